package turn

import (
	"strings"

	"ocp/internal/hook"
)

// message is one message of a turn as the hook shows it: fires by index.
type message struct {
	next    int          // index of the fire to be released next
	waiting map[int]fire // fires at or behind next
	opened  bool         // some of its text was released
	ended   bool         // its final fire was released
}

type fire struct {
	delta string
	final bool
}

// How a fire came.
type arrival int

const (
	inOrder arrival = iota
	early           // an earlier one is still missing
	duplicate
)

func (m *message) add(e hook.Event) arrival {
	if _, seen := m.waiting[e.Index]; seen || e.Index < m.next || m.ended {
		return duplicate
	}
	m.waiting[e.Index] = fire{delta: e.Delta, final: e.Final}
	if e.Index > m.next {
		if _, there := m.waiting[m.next]; !there {
			return early
		}
	}
	return inOrder
}

// take removes and returns the text of the fires that are next in order. That of one
// alone, which is the rule, is not copied.
func (m *message) take() string {
	texts := make([]string, 0, 4)
	for {
		f, there := m.waiting[m.next]
		if !there {
			break
		}
		delete(m.waiting, m.next)
		m.next++
		texts = append(texts, f.delta)
		if f.final {
			m.ended = true
			break
		}
	}
	return strings.Join(texts, "")
}

// peek returns the text that take would.
func (m *message) peek() string {
	text := ""
	for i := m.next; ; i++ {
		f, there := m.waiting[i]
		if !there {
			return text
		}
		text += f.delta
		if f.final {
			return text
		}
	}
}
