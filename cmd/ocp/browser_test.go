package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"ocp/internal/programtest"
)

// browserPatience is how long a browser is waited for.
const browserPatience = time.Minute

// browser is a Chromium with an empty profile and one page open.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu        sync.Mutex
	requested []string // guarded by mu
	complaint []string // of the page's console: guarded by mu
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	path := programtest.Find(t, "chromium")
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1200, 900),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
	}
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	b := &browser{t: t, ctx: ctx}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("close the browser: %v", err)
		}
		end()
	})
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	return b
}

func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requested = append(b.requested, e.Request.URL)
	case *runtime.EventExceptionThrown:
		b.complaint = append(b.complaint, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.complaint = append(b.complaint, e.Entry.Text+" "+e.Entry.URL)
	}
}

// do fails the test if an action fails, or takes too long.
func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserPatience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		body, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		b.t.Fatalf("%v; the page:\n%s", err, body)
	}
}

// call runs a command of the browser's protocol.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.t.Fatal(err)
	}
}

// until waits for a JavaScript expression to be true. An id is a variable to it.
func (b *browser) until(expression string) {
	b.t.Helper()
	b.do(chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(browserPatience), chromedp.WithPollingInterval(50*time.Millisecond)))
}

func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%v, of %s", err, expression)
	}
	return value
}

// look has the page drawn for a width and a colour scheme, checks what it must be for its
// readers, and keeps a picture if OCP_SCREENSHOTS names a folder.
func (b *browser) look(name, scheme string, width int64) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1, Mobile: width < 500})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	if wide := evaluate[int64](b, "document.documentElement.scrollWidth"); wide > width {
		b.t.Errorf("%s: at %d px the page is %d px wide", name, width, wide)
	}
	for _, pale := range evaluate[[]string](b, paleTexts) {
		b.t.Errorf("%s, %s: too little contrast: %s", name, scheme, pale)
	}
	for _, bare := range evaluate[[]string](b, `[...document.querySelectorAll('input, textarea, select')].filter(e => !e.labels.length).map(e => e.id)`) {
		b.t.Errorf("%s: %s has no label", name, bare)
	}
	if got := evaluate[string](b, `[...document.querySelectorAll('h1, h2, h3')].map(e => e.tagName[1]).join('')`); !strings.HasPrefix(got, "12") || strings.Contains(got, "13") || strings.Count(got, "1") != 1 {
		b.t.Errorf("%s: the levels of the headings are %s", name, got)
	}
	dir := os.Getenv("OCP_SCREENSHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600); err != nil {
		b.t.Error(err)
	}
}

// paleTexts lists texts with a contrast of less than 4.5, as WCAG 2 measures it.
const paleTexts = `(() => {
	const part = c => (c /= 255) <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
	const light = c => { const [r, g, b] = c.match(/[\d.]+/g).map(Number); return .2126 * part(r) + .7152 * part(g) + .0722 * part(b); };
	const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\)$|transparent/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
	const pale = [];
	for (const e of document.querySelectorAll('body *')) {
		const text = [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data.trim()).join('');
		if (!text || !e.checkVisibility() || e.closest('title') || e.disabled) continue;
		const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
		const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		if (contrast < 4.5) pale.push(contrast.toFixed(2) + ' ' + text);
	}
	return pale;
})()`

// wantQuiet checks that the page has asked nobody but the proxy, and that the browser had
// nothing to complain of but what is allowed.
func (b *browser) wantQuiet(url string, allowed ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, to := range b.requested {
		if !strings.HasPrefix(to, url+"/") {
			b.t.Errorf("the page asked for %s", to)
		}
	}
next:
	for _, text := range b.complaint {
		for _, part := range allowed {
			if strings.Contains(text, part) {
				continue next
			}
		}
		b.t.Errorf("the browser complains: %s", text)
	}
}

// withoutScripts has the next pages run none.
func (b *browser) withoutScripts() {
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}
