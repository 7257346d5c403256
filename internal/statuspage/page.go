// Package statuspage is the page at / that shows an operator what the server does: whether
// it is ready, its turns stage by stage, failures and what to do about them, sessions,
// exactness, usage. It is rendered here, so that it works without scripts; with them it
// follows by server-sent events. It shows nothing of a conversation, and nothing at all to
// who may not see it. It loads nothing from elsewhere.
package statuspage

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"time"

	"ocp/internal/server"
)

//go:embed assets
var assets embed.FS

const (
	// writeTimeout bounds each write, so that a browser that does not read holds nothing.
	writeTimeout = 30 * time.Second
	// freshFor is how long what was rendered serves further listeners. It also bounds how
	// often that is done.
	freshFor = 500 * time.Millisecond
)

// policy allows the page's own files and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Options configure a Page.
type Options struct {
	Status func() server.Status // required
	Models []string             // that can be tried; the first one is chosen
}

// Page shows what its Observe was told and what the status says.
type Page struct {
	options   Options
	templates *template.Template
	turns     history

	mu        sync.Mutex
	listeners map[chan<- struct{}]bool // each has room for one; guarded by mu
	sections  []section                // rendered last; guarded by mu, as is when
	rendered  time.Time
}

// New makes a page that has seen no turn.
func New(o Options) *Page {
	p := &Page{options: o, listeners: map[chan<- struct{}]bool{}, turns: newHistory()}
	p.templates = template.Must(template.New("").Funcs(template.FuncMap{
		"took": took, "number": anyNumber, "clock": clock, "plural": plural,
	}).ParseFS(assets, "assets/*.html"))
	return p
}

// Observe takes note of a turn's state. It is for server.Options.Observers.
func (p *Page) Observe(t server.Trace) {
	p.turns.observe(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	for listener := range p.listeners {
		select {
		case listener <- struct{}{}:
		default: // it has not looked yet
		}
	}
}

// Mounts are the page's routes.
func (p *Page) Mounts() []server.Mount {
	mounts := []server.Mount{
		{Path: "/{$}", Open: true, Form: true, Serve: p.serve},
		{Path: "/status/events", Serve: p.events},
	}
	for name, kind := range map[string]string{"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"} {
		mounts = append(mounts, server.Mount{Path: "/status/" + name, Open: true, Serve: asset(name, kind)})
	}
	return mounts
}

// asset serves one of the page's files. They hold no figures, so that nobody needs a key.
func asset(name, kind string) func(http.ResponseWriter, *http.Request, bool) {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return func(w http.ResponseWriter, r *http.Request, _ bool) {
		harden(w)
		w.Header().Set("Content-Type", kind+"; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(data) // a failure is the browser's going
	}
}

// harden sets the headers that all answers have.
func harden(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with none, a form's Origin would be null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// serve writes the page, or to who may not see it a form that asks for a key.
func (p *Page) serve(w http.ResponseWriter, r *http.Request, allowed bool) {
	data := struct {
		Locked, Wrong bool
		Reload        bool // without scripts
		Models        []string
		Sections      []section
	}{Locked: !allowed, Wrong: !allowed && r.Method == http.MethodPost, Reload: allowed && r.Method != http.MethodPost, Models: p.options.Models}
	if allowed {
		data.Sections = p.render(time.Now())
	}
	var page bytes.Buffer
	if err := p.templates.ExecuteTemplate(&page, "page.html", data); err != nil {
		panic(fmt.Errorf("status page: %w", err)) // the server logs it
	}
	harden(w)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if data.Wrong {
		w.WriteHeader(http.StatusUnauthorized)
	}
	_, _ = w.Write(page.Bytes())
}

// section is a part of the page that is renewed as a whole.
type section struct {
	ID, Title string
	HTML      template.HTML // made by a template
}

// titles are the sections' in their order; a section's id is its template's name.
var titles = []struct{ id, title string }{
	{"state", "State"},
	{"load", "Sessions"},
	{"turns", "Turns"},
	{"latency", "Latency"},
	{"failures", "Failures"},
	{"exact", "Exactness"},
	{"usage", "Usage"},
}

// render returns the sections, which are at most freshFor old.
func (p *Page) render(now time.Time) []section {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sections != nil && now.Sub(p.rendered) < freshFor {
		return p.sections
	}
	v := p.turns.view(now, p.options.Status())
	sections := make([]section, len(titles))
	for i, s := range titles {
		var html strings.Builder
		if err := p.templates.ExecuteTemplate(&html, s.id, v); err != nil {
			panic(fmt.Errorf("status page: %w", err))
		}
		sections[i] = section{s.id, s.title, template.HTML(html.String())}
	}
	p.sections, p.rendered = sections, now
	return sections
}
