package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"ocp/internal/claude/claudetest"
	"ocp/internal/config"
)

// answerTurn has a turn end well, or as its model says.
func (r *rig) answerTurn(model string, key ...string) {
	r.t.Helper()
	req := r.request(paths[0], model, true)
	for _, k := range key {
		req.Header.Set("Authorization", "Bearer "+k)
	}
	if _, err := r.do(req); err != nil {
		r.t.Error(err)
	}
}

// runTurn has a turn run, with half of its answer given, until the test ends it.
func (r *rig) runTurn() (end func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	res, err := r.client.Do(r.request(paths[2], r.model(claudetest.Boot(), claudetest.Deltas("m", "half an answer\n", "and more\n")), true).WithContext(ctx))
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := res.Body.Read(make([]byte, 1)); err != nil {
		r.t.Error(err)
	}
	return func() {
		cancel()
		_ = res.Body.Close()
	}
}

// TestStatusPageInABrowser has Chromium follow good, failed and running turns, and try one.
func TestStatusPageInABrowser(t *testing.T) {
	b := startBrowser(t)
	r := serveStandin(t, nil)
	b.do(chromedp.Navigate(r.url))
	b.until(`live.textContent === 'live' && turns.innerText.includes('No turn yet')`)
	b.look("empty", "light", 1200)

	good := r.model(claudetest.Answer("You said:\n", "{prompt}"))
	for range 3 {
		r.answerTurn(good)
	}
	r.answerTurn(r.model(claudetest.Boot(), []claudetest.Step{
		{Do: claudetest.StopFailure, Reason: "server_error", Text: "API Error"},
		{Do: claudetest.BannerRecord, Reason: "server_error", Status: 529, Text: "API Error"},
	}))
	end := r.runTurn()
	defer end()
	b.until(`turns.querySelectorAll('li.good').length === 3 && turns.querySelectorAll('li.bad').length === 1 &&
		turns.querySelector('li.running .label').textContent === 'streaming'`)
	b.until(`failures.innerText.includes('overloaded') && failures.innerText.includes('What to do') && document.querySelector('section.usage tbody tr')`)
	if got := evaluate[string](b, `load.innerText`); !strings.Contains(got, "1 of 4") {
		t.Errorf("the sessions are %q", got)
	}
	if words := evaluate[string](b, `turns.querySelector('li.good svg').getAttribute('aria-label')`); !strings.Contains(words, "boot") || !strings.Contains(words, "verifying") {
		t.Errorf("the bars are described as %q", words)
	}
	b.look("light", "light", 1200)
	b.look("dark", "dark", 1200)
	b.look("narrow-light", "light", 390)
	b.look("narrow-dark", "dark", 390)

	b.do(chromedp.SetValue[chromedp.CSS]("#prompt", "two\nlines <b>"), chromedp.Click[chromedp.CSS]("#send"))
	b.until(`figures.textContent.includes('whole and checked')`)
	if got := evaluate[string](b, `answer.textContent`); got != "You said:\ntwo\nlines <b>" {
		t.Errorf("the answer is %q", got)
	}
	b.look("tried", "light", 1200)
	end()
	b.until(`turns.querySelectorAll('li.running').length === 0 && turns.innerText.includes('canceled')`)
	b.wantQuiet(r.url)
}

// TestStatusPageTriesStop has the box's answer stopped, and its errors shown.
func TestStatusPageTriesStop(t *testing.T) {
	b := startBrowser(t)
	silent := ""
	r := serveStandin(t, func(c *config.Serve) { c.IdleTimeout = time.Minute })
	silent = r.model(claudetest.Boot(), claudetest.Deltas("m", "half an answer\n"))
	broken := r.model(claudetest.Boot(), claudetest.Deltas("m", "half an answer\n"), []claudetest.Step{{Do: claudetest.Exit, N: 1}})
	refused := r.model([]claudetest.Step{{Do: claudetest.Exit, N: 1}})
	b.do(chromedp.Navigate(r.url))
	b.until(`live.textContent === 'live'`)
	ask := func(model string) {
		b.do(chromedp.Evaluate[chromedp.Void](`model.add(new Option('`+model+`')), model.value = '`+model+`', undefined`), chromedp.Click[chromedp.CSS]("#send"))
	}
	ask(silent)
	b.until(`answer.textContent === 'half an answer\n'`)
	b.do(chromedp.Click[chromedp.CSS]("#stop"))
	b.until(`figures.textContent === 'Stopped.' && turns.innerText.includes('canceled')`)
	ask(broken)
	b.until(`figures.textContent.startsWith('Failed: the Claude Code session') && !send.disabled`)
	ask(refused)
	b.until(`figures.textContent.startsWith('Failed: ') && answer.textContent === '' && !send.disabled`)
	b.wantQuiet(r.url, "502")
}

// TestStatusPageWantsAKey has Chromium see nothing until a key unlocks the page.
func TestStatusPageWantsAKey(t *testing.T) {
	const key = "canary-key"
	b := startBrowser(t)
	r := serveStandin(t, func(c *config.Serve) { c.APIKey = []string{key} })
	r.key = key
	good := r.model(claudetest.Answer("fine\n"))
	r.answerTurn(good, key)
	b.do(chromedp.Navigate(r.url))
	b.until(`document.getElementById('key')`)
	for _, word := range []string{claudetest.Version, "ocp-", "Ready", "fine", good} {
		if page := evaluate[string](b, `document.documentElement.outerHTML`); strings.Contains(page, word) {
			t.Errorf("without a key the page shows %q", word)
		}
	}
	b.look("locked", "light", 390)
	b.do(chromedp.SendKeys[chromedp.CSS]("#key", "another"), chromedp.Click[chromedp.CSS]("#unlock button"))
	b.until(`wrong.textContent.includes('not one that this server knows')`)
	b.do(chromedp.SetValue[chromedp.CSS]("#key", key), chromedp.Click[chromedp.CSS]("#unlock button"))
	b.until(`live.textContent === 'live' && turns.querySelectorAll('li.good').length === 1`)
	b.do(chromedp.Reload())
	b.until(`window.turns && turns.querySelectorAll('li.good').length === 1`)
	b.do(chromedp.Click[chromedp.CSS]("#send"))
	b.until(`figures.textContent.includes('whole and checked')`)
	b.until(`turns.querySelectorAll('li.good').length === 2`)
	b.look("unlocked", "dark", 390)
	if kept := evaluate[string](b, `document.cookie + JSON.stringify(localStorage) + location.href`); kept != "{}"+r.url+"/" {
		t.Errorf("the page has kept %q", kept)
	}
	b.wantQuiet(r.url)
}

// TestStatusPageWithoutScripts has the essentials there all the same, behind a key too.
func TestStatusPageWithoutScripts(t *testing.T) {
	const key = "canary-key"
	b := startBrowser(t)
	r := serveStandin(t, func(c *config.Serve) { c.APIKey = []string{key} })
	r.key = key
	r.answerTurn(r.model(claudetest.Answer("fine\n")), key)
	b.withoutScripts()
	b.do(chromedp.Navigate(r.url), chromedp.SendKeys[chromedp.CSS]("#key", key+"\n"), chromedp.WaitReady[chromedp.CSS]("#turns li.good"))
	text := func(selector string) string {
		return evaluate[string](b, "document.querySelector('"+selector+"').innerText")
	}
	state, live, tried := text("#state"), text("#live"), text(".try")
	if !strings.Contains(state, "Ready") || !strings.Contains(live, "as of when") || !strings.Contains(tried, "curl") {
		t.Errorf("the page says %q, %q, %q", state, live, tried)
	}
}

// TestStatusPageShowsNoText looks for the conversation in the page and its events.
func TestStatusPageShowsNoText(t *testing.T) {
	r := serveStandin(t, nil)
	r.answerTurn(r.model(claudetest.Answer("You said:\n", "{prompt}")))
	page := r.get("/")
	if !strings.Contains(page, `<li class="good">`) {
		t.Error("the turn is not on the page")
	}
	res, err := r.client.Get(r.url + "/status/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	events := make([]byte, 32<<10)
	n, err := res.Body.Read(events)
	if err != nil || res.StatusCode != http.StatusOK || n == 0 {
		t.Fatalf("got %d, %v", res.StatusCode, err)
	}
	for _, secret := range unseen {
		if strings.Contains(page, secret) || strings.Contains(string(events[:n]), secret) {
			t.Errorf("the page shows %q", secret)
		}
	}
}
