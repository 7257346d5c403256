package turn

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/hook"
	"ocp/internal/transcript"
)

// A said is one assistant message as a model says it.
type said struct {
	id     string
	blocks []string
	stop   string
	deltas []string // how the hook cuts it; default: by line
}

func (s said) text() string { return strings.Join(s.blocks, "") }

// fires are the hook calls of a message: whole lines, the rest with final set.
func (s said) fires() []hook.Event {
	deltas := s.deltas
	if deltas == nil {
		deltas = strings.SplitAfter(s.text(), "\n")
	}
	var events []hook.Event
	for i, d := range deltas {
		events = append(events, hook.Event{
			Name: hook.MessageDisplay, TurnID: "turn", MessageID: "hook-" + s.id, Index: i, Delta: d, Final: i == len(deltas)-1,
		})
	}
	return events
}

// records are the transcript entries of a message: one a block.
func (s said) records() []transcript.Record {
	var records []transcript.Record
	for _, text := range s.blocks {
		records = append(records, transcript.Record{Type: "assistant", Entrypoint: "cli", Version: "2.1.332", Message: &transcript.Message{
			ID: s.id, Role: "assistant", Model: "claude-test", StopReason: s.stop,
			Content: transcript.Content{{Type: "text", Text: text}},
			Usage:   transcript.Usage{InputTokens: 3, CacheCreationInputTokens: 50, CacheReadInputTokens: 1000, OutputTokens: 7},
		}})
	}
	return records
}

func stopHook(last string) hook.Event {
	trimmed := trimJS(last)
	if trimmed == "" {
		return hook.Event{Name: hook.Stop}
	}
	return hook.Event{Name: hook.Stop, LastAssistantMessage: &trimmed}
}

var (
	endRecord = transcript.Record{Type: "system", Subtype: "turn_duration"}
	metaUser  = transcript.Record{Type: "user", IsMeta: true, Message: &transcript.Message{Role: "user", Content: transcript.Content{{Type: "text", Text: "go on"}}}}
)

// A run feeds a turn and collects what it yields.
type run struct {
	*Turn
	text     strings.Builder
	finished *Finished
	err      error
}

func newRun() *run { return &run{Turn: New(Options{Classify: classifyPlainly})} }

// newLimitedRun is a turn whose client set the token limit.
func newLimitedRun() *run {
	return &run{Turn: New(Options{Classify: classifyPlainly, AtLimit: true})}
}

func classifyPlainly(f Failure) *Error {
	return &Error{Kind: Upstream, Message: fmt.Sprintf("%s %d", f.Error, f.Status)}
}

// step takes hook.Event, transcript.Record or "quiet".
func (r *run) step(input any) {
	var events []Event
	var err error
	switch in := input.(type) {
	case hook.Event:
		events, err = r.Hook(in)
	case transcript.Record:
		events, err = r.Record(in)
	case string:
		events, err = r.Quiet()
	}
	for _, e := range events {
		switch e := e.(type) {
		case Delta:
			r.text.WriteString(e.Text)
		case Finished:
			r.finished = &e
		}
	}
	if err != nil {
		r.err = err
	}
}

func (r *run) feed(inputs ...any) *run {
	for _, in := range inputs {
		r.step(in)
	}
	return r
}

// each makes inputs of a list.
func each[T any](list []T) []any {
	inputs := make([]any, len(list))
	for i, e := range list {
		inputs[i] = e
	}
	return inputs
}

func (r *run) wantFinished(t *testing.T, text string) Finished {
	t.Helper()
	if r.err != nil {
		t.Fatalf("the turn failed: %v", r.err)
	}
	if r.finished == nil {
		t.Fatalf("the turn has not finished; sent so far: %q", r.text.String())
	}
	if diff := cmp.Diff(text, r.text.String()); diff != "" {
		t.Fatalf("text (-want +got):\n%s", diff)
	}
	return *r.finished
}

func (r *run) wantKind(t *testing.T, kind Kind) {
	t.Helper()
	var e *Error
	if !errors.As(r.err, &e) || e.Kind != kind {
		t.Fatalf("got error %v, want kind %s", r.err, kind)
	}
	if r.finished != nil {
		t.Fatal("the turn finished although it failed")
	}
}

var plain = said{id: "msg_1", blocks: []string{"one\ntwo\n\nthree"}, stop: "end_turn"}

func TestPlainTurn(t *testing.T) {
	r := newRun().feed(hook.Event{Name: hook.SessionStart})
	r.feed(each(plain.fires())...)
	if got := r.text.String(); got != plain.text() {
		t.Fatalf("before Stop: got %q", got)
	}
	r.feed(stopHook(plain.text()))
	if r.finished != nil {
		t.Fatal("finished before the transcript showed the answer")
	}
	r.feed(each(plain.records())...)
	got := r.wantFinished(t, plain.text())
	want := Finished{
		Model: "claude-test", StopReason: EndTurn,
		Usage:   Usage{Input: 3, CacheRead: 1000, CacheCreation: 50, Output: 7},
		Session: SessionInfo{Entrypoint: "cli", CLIVersion: "2.1.332"},
		Stats:   Stats{Deltas: 4, TextBytes: len(plain.text())},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("finished (-want +got):\n%s", diff)
	}
}

func TestDeltasAreReleasedInIndexOrder(t *testing.T) {
	f := plain.fires()
	r := newRun().feed(f[2], f[1])
	if got := r.text.String(); got != "" {
		t.Fatalf("released %q before index 0", got)
	}
	r.feed(f[0], f[1], f[3], f[3], stopHook(plain.text()))
	r.feed(each(plain.records())...)
	got := r.wantFinished(t, plain.text())
	if got.Stats.Reordered != 2 || got.Stats.Duplicates != 2 {
		t.Errorf("stats: %+v, want 2 reordered and 2 duplicates", got.Stats)
	}
}

func TestEndOfTurn(t *testing.T) {
	empty := said{id: "msg_1", blocks: []string{""}, stop: "end_turn"}
	broken := said{id: "msg_1", blocks: []string{"half"}, stop: ""}
	twice := said{id: "msg_1", blocks: []string{"a", "a"}, stop: "end_turn"}
	f := plain.fires()
	for _, test := range []struct {
		name   string
		inputs []any
		text   string // of a turn that finishes
		kind   Kind   // of one that fails
	}{
		{
			name:   "records before Stop",
			inputs: append(append(each(f), each(plain.records())...), stopHook(plain.text())),
			text:   plain.text(),
		},
		{
			name:   "final fire after Stop and records",
			inputs: append(append(each(f[:3]), stopHook(plain.text()), plain.records()[0]), f[3]),
			text:   plain.text(),
		},
		{
			name:   "lost fire, filled from the transcript at the end record",
			inputs: append(append(each(f[:1]), each(f[2:])...), stopHook(plain.text()), plain.records()[0], endRecord),
			text:   plain.text(),
		},
		{
			name:   "lost fire and no end record",
			inputs: append(each(f[1:]), stopHook(plain.text()), plain.records()[0], "quiet"),
			text:   plain.text(),
		},
		{
			name:   "no hook at all",
			inputs: []any{plain.records()[0], endRecord},
			text:   plain.text(),
		},
		{
			name:   "no hook and no end record",
			inputs: []any{plain.records()[0], "quiet"},
			text:   plain.text(),
		},
		{
			name:   "Stop lost",
			inputs: append(each(f), plain.records()[0], endRecord),
			text:   plain.text(),
		},
		{
			name:   "transcript silent",
			inputs: append(each(f), stopHook(plain.text()), "quiet", "quiet", "quiet", "quiet", "quiet", "quiet"),
			kind:   Unverified,
		},
		{
			name:   "transcript late by several silences",
			inputs: append(each(f), stopHook(plain.text()), "quiet", "quiet", "quiet", plain.records()[0]),
			text:   plain.text(),
		},
		{
			name:   "equal blocks, the second record later",
			inputs: append(each(twice.fires()), stopHook("a"), twice.records()[0], twice.records()[1]),
			text:   "aa",
		},
		{
			name:   "an older answer is no end",
			inputs: []any{plain.records()[0], stopHook("something else"), "quiet"},
		},
		{
			name:   "empty answer",
			inputs: []any{stopHook(""), empty.records()[0], endRecord},
			text:   "",
		},
		{
			name:   "empty answer without a record",
			inputs: []any{stopHook(""), endRecord},
			text:   "",
		},
		{
			name:   "no stop reason",
			inputs: append(each(broken.fires()), stopHook("half"), broken.records()[0], endRecord),
			kind:   Upstream,
		},
		{
			name:   "other text than was streamed",
			inputs: append(each(f), said{id: "x", blocks: []string{"one\nzwei"}, stop: "end_turn"}.records()[0]),
			kind:   Diverged,
		},
		{
			name:   "less text than was streamed",
			inputs: append(each(f), stopHook("one"), said{id: "x", blocks: []string{"one\n"}, stop: "end_turn"}.records()[0], endRecord),
			kind:   Diverged,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRun().feed(test.inputs...)
			switch {
			case test.kind != "":
				r.wantKind(t, test.kind)
			case test.text != "" || strings.HasPrefix(test.name, "empty"):
				r.wantFinished(t, test.text)
			case r.finished != nil || r.err != nil:
				t.Fatalf("ended with %v, %v; want it to wait", r.finished, r.err)
			}
		})
	}
}

func TestFailure(t *testing.T) {
	banner := transcript.Record{
		Type: "assistant", IsAPIErrorMessage: true, Error: "rate_limit", APIErrorStatus: 429,
		Message: &transcript.Message{ID: "uuid", Model: transcript.Synthetic, StopReason: "stop_sequence", Content: transcript.Content{{Type: "text", Text: "API Error"}}},
	}
	failure := hook.Event{Name: hook.StopFailure, Error: "rate_limit"}
	f := plain.fires()

	r := newRun().feed(f[0], failure)
	if r.err != nil {
		t.Fatal("failed before the entry with the status was there")
	}
	r.feed(banner).wantKind(t, Upstream)
	if want := "upstream: rate_limit 429"; r.err.Error() != want {
		t.Errorf("got %q, want %q", r.err, want)
	}
	if got := r.text.String(); got != "one\n" {
		t.Errorf("sent %q", got)
	}
	newRun().feed(failure, "quiet").wantKind(t, Upstream)
	newRun().feed(banner, endRecord).wantKind(t, Upstream)
	newRun().feed(banner, stopHook("API Error")).wantKind(t, Upstream)

	limit := said{id: "msg_1", blocks: []string{"cut"}, stop: "max_tokens"}
	limited := banner
	limited.Error = "max_output_tokens"
	r = newRun().feed(limit.fires()[0], hook.Event{Name: hook.StopFailure, Error: "max_output_tokens"}, limit.records()[0], limited)
	if got := r.wantFinished(t, "cut"); got.StopReason != MaxTokens {
		t.Errorf("stop reason %q, want max_tokens", got.StopReason)
	}
}

// TestFailureEntry pins that the text of the error entry is told apart from what a hook
// says was the last text.
func TestFailureEntry(t *testing.T) {
	var got Failure
	r := run{Turn: New(Options{Classify: func(f Failure) *Error {
		got = f
		return classifyPlainly(f)
	}})}
	said := "an answer"
	r.feed(hook.Event{Name: hook.StopFailure, Error: "rate_limit", LastAssistantMessage: &said}, transcript.Record{
		Type: "assistant", IsAPIErrorMessage: true, APIErrorStatus: 429, ResetsAt: 5,
		Message: &transcript.Message{ID: "uuid", Model: transcript.Synthetic, Content: transcript.Content{{Type: "text", Text: "API Error"}}},
	}).wantKind(t, Upstream)
	want := Failure{Error: "rate_limit", Message: said, Status: 429, Entry: "API Error", ResetsAt: time.Unix(5, 0)}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestExited(t *testing.T) {
	cause := errors.New("signal: killed")
	r := newRun().feed(each(plain.fires())...)
	_, r.err = r.Exited(cause)
	r.wantKind(t, SessionFailed)
	if !errors.Is(r.err, cause) {
		t.Errorf("%v does not wrap its cause", r.err)
	}
	r = newRun().feed(append(each(plain.fires()), plain.records()[0])...)
	if events, err := r.Exited(cause); err == nil || len(events) > 0 {
		t.Errorf("a turn without Stop or end record finished at exit: %v, %v", events, err)
	}
}

// A second message goes out live once the transcript shows that the first one stands.
func TestSecondMessage(t *testing.T) {
	for _, test := range []struct {
		name, stop, joint string
	}{
		{"continuation", "max_tokens", ""},
		{"other message", "tool_use", "\n\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := said{id: "msg_a", blocks: []string{"first\npart"}, stop: test.stop}
			b := said{id: "msg_b", blocks: []string{"second\nhalf"}, stop: "end_turn"}
			want := a.text() + test.joint + b.text()
			bf := b.fires()

			r := newRun().feed(append(each(a.fires()), bf[0])...)
			if got := r.text.String(); got != a.text() {
				t.Fatalf("before the record: got %q, want only the first message", got)
			}
			r.feed(a.records()[0])
			if got := r.text.String(); got != a.text()+test.joint+"second\n" {
				t.Fatalf("after the record: got %q", got)
			}
			r.feed(metaUser, bf[1], stopHook(b.text()), b.records()[0]).wantFinished(t, want)

			// The second message replaces the first: only the second is in the transcript.
			r = newRun().feed(append(each(a.fires()), each(bf)...)...)
			r.feed(stopHook(b.text()), b.records()[0]).wantKind(t, Diverged)
			if got := r.text.String(); got != a.text() {
				t.Errorf("sent %q of a replaced answer, want only the first message", got)
			}
		})
	}
}

// A message that overtakes one which the transcript already shows is not taken for the
// first.
func TestMessageOvertakesAnother(t *testing.T) {
	a := said{id: "msg_a", blocks: []string{"first\n"}, stop: "max_tokens"}
	b := said{id: "msg_b", blocks: []string{"second\n"}, stop: "end_turn"}
	r := newRun().feed(a.records()[0]).feed(each(b.fires())...)
	if got := r.text.String(); got != "" {
		t.Fatalf("sent %q before the first message", got)
	}
	r.feed(each(a.fires())...)
	r.feed(stopHook(b.text()), b.records()[0], endRecord).wantFinished(t, "first\nsecond\n")
}

func TestBlocksThatAreNotText(t *testing.T) {
	record := plain.records()[0]
	record.Message.Content = transcript.Content{{Type: "thinking"}, {Type: "text", Text: "a"}, {Type: "tool_use"}, {Type: "text", Text: "b"}}
	side := said{id: "side", blocks: []string{"sub-agent"}, stop: "end_turn"}.records()[0]
	side.IsSidechain = true
	newRun().feed(side, record, endRecord).wantFinished(t, "ab")
}

func TestTrimJS(t *testing.T) {
	for in, want := range map[string]string{
		" \t\r\n\v\f\u00a0\u2028\u2029\u3000\ufeffx\n": "x",
		"\u0085x\u200b": "\u0085x\u200b", // not white space in JavaScript
		"":              "",
	} {
		if got := trimJS(in); got != want {
			t.Errorf("trimJS(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestDeltasSayWhenTheyWereReceived checks that a delta carries the time of the hook call
// that completed it, not of those it was held for.
func TestDeltasSayWhenTheyWereReceived(t *testing.T) {
	turn := New(Options{})
	m := said{id: "m", blocks: []string{"one\ntwo\n"}, stop: "end_turn"}
	var got []time.Time
	for i, at := range []time.Time{time.Unix(1, 0), time.Unix(2, 0)} {
		fire := m.fires()[1-i] // the second first
		fire.Received = at
		events, err := turn.Hook(fire)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			got = append(got, e.(Delta).Received)
		}
	}
	if diff := cmp.Diff([]time.Time{time.Unix(2, 0)}, got); diff != "" {
		t.Errorf("received differs (-want +got):\n%s", diff)
	}
}
