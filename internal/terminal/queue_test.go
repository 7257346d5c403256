package terminal

import (
	"errors"
	"strings"
	"testing"
)

func TestQueue(t *testing.T) {
	q := NewQueue()
	put := func(p string, want error) {
		t.Helper()
		if err := q.Put([]byte(p), 10); !errors.Is(err, want) {
			t.Errorf("put(%q) = %v, want %v", p, err, want)
		}
	}
	take := func(want string) {
		t.Helper()
		buf := make([]byte, 4)
		if n, ok := q.Take(buf); !ok || string(buf[:n]) != want {
			t.Errorf("take = %q, %v; want %q", buf[:n], ok, want)
		}
	}
	put("01234567", nil)
	put("890", ErrBacklog)
	put("89", nil)
	take("0123")
	put("abcd", nil)
	take("4567")
	q.Drop()
	put("xyz", nil)
	q.Close()
	put("late", ErrExited)
	take("xyz")
	if n, ok := q.Take(make([]byte, 4)); ok {
		t.Errorf("take from a closed and empty queue returned %d bytes", n)
	}
}

// However much is put in and refused, a queue holds no more than its limit.
func TestQueueIsBounded(t *testing.T) {
	const limit = 1 << 10
	q := NewQueue()
	for range 100 {
		_ = q.Put([]byte(strings.Repeat("x", 100)), limit)
		if len(q.pending) > limit {
			t.Fatalf("%d bytes are pending, more than %d", len(q.pending), limit)
		}
		if len(q.pending) > limit-100 {
			_, _ = q.Take(make([]byte, 64))
		}
	}
	if c := cap(q.pending); c > 4*limit {
		t.Errorf("the queue has grown to %d bytes for a limit of %d", c, limit)
	}
}
