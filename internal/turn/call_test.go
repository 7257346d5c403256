package turn

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/hook"
	"ocp/internal/transcript"
)

// assistantRecord is a record of one block of a message.
func assistantRecord(t *testing.T, id, stop, block string) transcript.Record {
	t.Helper()
	r, err := transcript.Parse([]byte(`{"type":"assistant","message":{"id":"` + id + `","role":"assistant","model":"m","stop_reason":"` + stop + `","usage":{"output_tokens":3},"content":[` + block + `]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func textBlock(s string) string {
	data, _ := json.Marshal(s)
	return `{"type":"text","text":` + string(data) + `}`
}

func callBlock(id, input string) string {
	return `{"type":"tool_use","id":"` + id + `","name":"f","input":` + input + `}`
}

func TestCalls(t *testing.T) {
	end := transcript.Record{Type: "system", Subtype: "turn_duration"}
	result := transcript.Record{Type: "user", Message: &transcript.Message{Role: "user"}}
	display := func(index int, text string, final bool) hook.Event {
		return hook.Event{Name: hook.MessageDisplay, MessageID: "d", Index: index, Delta: text, Final: final}
	}
	calls := hook.Event{Name: hook.PreToolUse}
	call := func(id, input string, at int) ToolCall {
		return ToolCall{ID: id, Name: "f", Input: json.RawMessage(input), At: at}
	}
	unparsed := callBlock("b", `{"__unparsedToolInput":{"raw":"{","len":1}}`)
	for _, test := range []struct {
		name  string
		steps []any // hook calls and records
		want  []Event
		stop  StopReason // empty if it must fail
	}{
		{
			"text between calls keeps its place",
			[]any{
				display(0, "one\n", false), calls, display(1, "two", true),
				assistantRecord(t, "m", "tool_use", textBlock("one\n")), assistantRecord(t, "m", "tool_use", callBlock("a", "{}")), result,
				assistantRecord(t, "m", "tool_use", textBlock("two")), assistantRecord(t, "m", "tool_use", callBlock("b", `{"x":1}`)), end,
			},
			[]Event{Delta{Text: "one\n"}, call("a", "{}", 4), Delta{Text: "two"}, call("b", `{"x":1}`, 7)},
			ToolUse,
		},
		{
			"no hook call came",
			[]any{assistantRecord(t, "m", "tool_use", textBlock("one")), assistantRecord(t, "m", "tool_use", callBlock("a", "{}")), end},
			[]Event{Delta{Text: "one"}, call("a", "{}", 3)},
			ToolUse,
		},
		{
			"the CLI goes on by itself",
			[]any{
				assistantRecord(t, "m", "tool_use", callBlock("a", "{}")), result, display(0, "later", true),
				assistantRecord(t, "n", "end_turn", textBlock("later")), end,
			},
			nil, "",
		},
		{
			"the CLI goes on by itself, in time",
			[]any{assistantRecord(t, "m", "tool_use", callBlock("a", "{}")), result, assistantRecord(t, "n", "end_turn", textBlock("later")), end},
			[]Event{call("a", "{}", 0)},
			ToolUse,
		},
		{
			"a call that the limit has cut",
			[]any{assistantRecord(t, "m", "max_tokens", callBlock("a", "{}")), assistantRecord(t, "m", "max_tokens", unparsed), result, assistantRecord(t, "n", "end_turn", textBlock("later"))},
			[]Event{call("a", "{}", 0)},
			MaxTokens,
		},
		{"arguments that are not JSON", []any{assistantRecord(t, "m", "tool_use", unparsed), end}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			turn := New(Options{AtCalls: true})
			var got []Event
			var failed error
			var fin Finished
			for _, step := range test.steps {
				var events []Event
				var err error
				switch step := step.(type) {
				case hook.Event:
					events, err = turn.Hook(step)
				case transcript.Record:
					events, err = turn.Record(step)
				}
				for _, e := range events {
					if f, ok := e.(Finished); ok {
						fin = f
					} else {
						got = append(got, e)
					}
				}
				if err != nil {
					failed = err
				}
			}
			if (failed != nil) != (test.stop == "") || fin.StopReason != test.stop || !turn.Over() {
				t.Fatalf("ended for %q, %v, over: %t", fin.StopReason, failed, turn.Over())
			}
			if test.stop == "" {
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if fin.Usage.Output != 3 {
				t.Errorf("the usage is %+v", fin.Usage)
			}
		})
	}
}

// Without an end record the calls are given out after a silence.
func TestCallsAfterSilence(t *testing.T) {
	turn := New(Options{AtCalls: true})
	if _, err := turn.Record(assistantRecord(t, "m", "tool_use", callBlock("a", "{}"))); err != nil || !turn.Settling() {
		t.Fatalf("settling: %t, %v", turn.Settling(), err)
	}
	events, err := turn.Quiet()
	if err != nil || len(events) != 2 {
		t.Errorf("got %+v, %v", events, err)
	}
}
