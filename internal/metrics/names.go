package metrics

import (
	"sync"
	"unicode/utf8"
)

// other is the label of all names that are one too many.
const other = "other"

// longest bounds a label's length, in bytes.
const longest = 100

// names keeps the values of a label few, since each is kept for ever and clients choose
// what they ask for.
type names struct {
	most int

	mu    sync.Mutex
	known map[string]bool // guarded by mu
}

// newNames knows some names from the start, whatever most is.
func newNames(most int, first []string) *names {
	n := &names{most: max(most, len(first)), known: map[string]bool{}}
	for _, name := range first {
		n.known[name] = true
	}
	return n
}

// label returns the name if it is known, or learn is set and there is room to learn it.
func (n *names) label(name string, learn bool) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.known[name]:
		return name
	case !learn || name == "" || len(n.known) >= n.most || len(name) > longest || !utf8.ValidString(name):
		return other
	}
	n.known[name] = true
	return name
}
