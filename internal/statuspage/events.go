package statuspage

import (
	"encoding/json"
	"net/http"
	"time"
)

const (
	// mostListeners bounds how many browsers follow at once.
	mostListeners = 16
	// every is how often a listener looks without being told: figures of running turns grow.
	every = time.Second
	// silence is the longest time without a byte, which shows that a browser has gone.
	silence = 15 * time.Second
)

// events sends each section when it has changed, from the first one on, until the browser
// goes or the server stops.
func (p *Page) events(w http.ResponseWriter, r *http.Request, _ bool) {
	wake := make(chan struct{}, 1)
	if !p.listen(wake) {
		harden(w)
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many browsers follow this page already", http.StatusServiceUnavailable)
		return
	}
	defer p.leave(wake)
	harden(w)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	sent, wrote := map[string]string{}, time.Time{}
	for {
		frames := changed(sent, p.render(time.Now()))
		if len(frames) == 0 && time.Since(wrote) >= silence {
			frames = []byte(": nothing new\n\n")
		}
		if len(frames) > 0 {
			if !write(w, frames) {
				return
			}
			wrote = time.Now()
		}
		pause := time.NewTimer(freshFor) // what is told meanwhile is shown together
		select {
		case <-pause.C:
		case <-r.Context().Done():
			pause.Stop()
			return
		}
		select {
		case <-wake:
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// changed returns the frames of the sections that are not as they were sent.
func changed(sent map[string]string, sections []section) []byte {
	var frames []byte
	for _, s := range sections {
		if sent[s.ID] == string(s.HTML) {
			continue
		}
		sent[s.ID] = string(s.HTML)
		data, err := json.Marshal(struct {
			ID   string `json:"id"`
			HTML string `json:"html"`
		}{s.ID, string(s.HTML)})
		if err != nil {
			panic(err) // two strings always marshal
		}
		frames = append(append(append(frames, "data: "...), data...), "\n\n"...)
	}
	return frames
}

func write(w http.ResponseWriter, frames []byte) bool {
	control := http.NewResponseController(w)
	if control.SetWriteDeadline(time.Now().Add(writeTimeout)) != nil {
		return false
	}
	if _, err := w.Write(frames); err != nil {
		return false
	}
	return control.Flush() == nil
}

// listen lets a listener be told of changes until it leaves; false if there are too many.
func (p *Page) listen(wake chan<- struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.listeners) >= mostListeners {
		return false
	}
	p.listeners[wake] = true
	return true
}

func (p *Page) leave(wake chan<- struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.listeners, wake)
}
