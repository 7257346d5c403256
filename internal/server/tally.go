package server

import (
	"cmp"
	"errors"
	"maps"
	"sync"
	"time"

	"ocp/internal/turn"
)

// tally counts how turns have ended. It holds no text of a conversation.
type tally struct {
	mu         sync.Mutex
	outcomes   map[string]int64 // by the outcome's word; guarded by mu, as all below
	inputDiffs int64            // messages that the CLI recorded otherwise than the client sent them
	succeeded  time.Time        // the last turn that ended well
	refused    time.Time        // the last one that failed for the credentials
	last       *Failure
	entrypoint string // of the last session that answered, as it says
}

// Failure is the last turn that failed other than by its client.
type Failure struct {
	Kind    string    `json:"kind"`
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
}

// count takes note of a turn's end.
func (t *tally) count(record *turnRecord, err error) {
	kind, now := outcome(err), time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.outcomes == nil {
		t.outcomes = map[string]int64{}
	}
	t.outcomes[kind]++
	t.inputDiffs += int64(record.Finished.Stats.InputDiffs)
	switch kind {
	case "ok":
		t.succeeded = now
		t.entrypoint = cmp.Or(record.Finished.Session.Entrypoint, t.entrypoint)
		return
	case string(turn.Canceled), string(turn.Shutdown), "bad_request", Limited:
		return
	case string(turn.Authentication):
		t.refused = now
	}
	t.last = &Failure{Kind: kind, Message: failureText(err), At: now.UTC().Truncate(time.Second)}
}

// failureText is an error's message, unless it may quote the conversation, as the
// upstream's do.
func failureText(err error) string {
	failed, ok := errors.AsType[*turn.Error](err)
	if !ok || failed.Kind == turn.InvalidRequest {
		return ""
	}
	return failed.Message
}

// refusedFor is how long a refusal of the credentials counts. Only a turn can show that it
// has gone, and a load balancer sends none to a server that is not ready.
const refusedFor = time.Minute

// snapshot is a tally at one moment.
type snapshot struct {
	outcomes   map[string]int64
	inputDiffs int64
	refused    bool // the credentials were refused lately, and no turn has gone well since
	last       *Failure
	entrypoint string
}

func (t *tally) snapshot() snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return snapshot{
		outcomes: maps.Clone(t.outcomes), inputDiffs: t.inputDiffs,
		refused: t.refused.After(t.succeeded) && time.Since(t.refused) < refusedFor, last: t.last, entrypoint: t.entrypoint,
	}
}
