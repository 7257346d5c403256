package turn

import (
	"testing"

	"ocp/internal/hook"
	"ocp/internal/transcript"
)

var (
	limited   = said{id: "msg_1", blocks: []string{"one\n", "two thr"}, stop: "max_tokens"}
	continued = said{id: "msg_2", blocks: []string{"ee"}, stop: "end_turn"}
)

// TestLimit goes through the signs that a message which reached the client's limit is
// whole: its deltas, a record behind it, silence, the end of the process.
func TestLimit(t *testing.T) {
	banner := transcript.Record{Type: "assistant", IsAPIErrorMessage: true, Error: "rate_limit", APIErrorStatus: 429, Message: &transcript.Message{ID: "b", Model: transcript.Synthetic}}
	for _, test := range []struct {
		name   string
		inputs []any
	}{
		{"deltas and records", append(each(limited.fires()), each(limited.records())...)},
		{"records and deltas", append(each(limited.records()), each(limited.fires())...)},
		{"a record of the CLI's own", append(each(limited.records()), metaUser)},
		{"the continuation's record", append(each(limited.records()), continued.records()[0])},
		{"the continuation failed", append(each(limited.records()), banner)},
		{"silence", append(each(limited.records()), "quiet")},
		{"the continuation's deltas first", append(append(each(limited.fires()), each(continued.fires())...), each(limited.records())...)},
	} {
		fin := newLimitedRun().feed(test.inputs...).wantFinished(t, limited.text())
		if fin.StopReason != MaxTokens || fin.Usage != (Usage{Input: 3, CacheRead: 1000, CacheCreation: 50, Output: 7}) {
			t.Errorf("%s: finished with %+v", test.name, fin)
		}
	}
}

// TestLimitWithoutText is an answer that spent all its tokens on thinking.
func TestLimitWithoutText(t *testing.T) {
	thinking := limited.records()[0]
	thinking.Message.Content = transcript.Content{{Type: "thinking"}}
	r := newLimitedRun().feed(thinking)
	if r.finished != nil || !r.Settling() {
		t.Fatalf("finished: %v, settling: %v", r.finished, r.Settling())
	}
	if fin := r.feed(metaUser).wantFinished(t, ""); fin.StopReason != MaxTokens {
		t.Errorf("finished with %+v", fin)
	}
}

// TestLimitNotReached pins that the limit changes nothing of other ends.
func TestLimitNotReached(t *testing.T) {
	r := newLimitedRun().feed(each(plain.fires())...)
	r.feed(each(plain.records())...)
	if r.finished != nil {
		t.Fatal("finished without Stop")
	}
	r.feed(stopHook(plain.text())).wantFinished(t, plain.text())

	r = newLimitedRun().feed(each(limited.records()[:1])...)
	r.feed(hook.Event{Name: hook.SessionStart})
	if r.finished != nil {
		t.Error("finished before the message was whole")
	}
}

// TestWithoutLimitContinues pins that without a limit of the client's the continuation
// is part of the answer.
func TestWithoutLimitContinues(t *testing.T) {
	r := newRun().feed(each(limited.records())...)
	r.feed(metaUser)
	r.feed(each(continued.records())...)
	r.feed(endRecord).wantFinished(t, limited.text()+continued.text())
}
