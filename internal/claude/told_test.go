package claude

import (
	"encoding/json"
	"testing"

	"ocp/internal/prompt"
	"ocp/internal/transcript"
)

// What the CLI would tell the model is told before the last message, whatever that is made
// of, and only where a session may go on.
func TestTold(t *testing.T) {
	l := standinLauncher(t, func(o *Options) { o.KeepSessions, o.Version = true, announcing })
	defer closeLauncher(t, l)
	key, p := Key{Model: "m"}, place{cwd: "/a/b"}
	if got := l.told(p, key); len(got) != 1 {
		t.Fatalf("%d entries, want the surroundings alone", len(got))
	}
	model := transcript.Record{Type: "attachment", AttachmentType: "model", Attachment: json.RawMessage(`{"type":"model","text":"x"}`)}
	l.learn(key, model)
	l.learn(Key{Model: "other"}, transcript.Record{Type: "attachment", AttachmentType: "date"})
	told := l.told(p, key)
	if len(told) != 2 || string(told[1].Told.(json.RawMessage)) != string(model.Attachment) {
		t.Fatalf("got %+v", told)
	}
	if got := l.told(p, Key{Model: "other"}); len(got) != 1 {
		t.Errorf("%d entries for a model that was not described", len(got))
	}
	result := prompt.Block{Type: "tool_result", Raw: json.RawMessage(`{"type":"tool_result"}`)}
	list := entries(prompt.Conversation{Messages: []prompt.Message{
		{Role: prompt.Assistant, Content: []prompt.Block{prompt.Text("a")}},
		{Role: prompt.User, Content: []prompt.Block{result, prompt.Text("b")}},
	}}, told...)
	if len(list) != 5 || list[0].Role != "assistant" || list[1].Told == nil || list[2].Told == nil || list[3].Role != "user" || list[4].Role != "user" {
		t.Errorf("got %+v", list)
	}

	for name, change := range map[string]func(*Options){
		"nothing is kept": func(o *Options) { o.KeepSessions = false },
		"another release": func(o *Options) { o.Version = "2.1.207" },
	} {
		other := standinLauncher(t, func(o *Options) {
			o.KeepSessions, o.Version = true, announcing
			change(o)
		})
		if got := other.told(p, key); got != nil {
			t.Errorf("%s: got %+v", name, got)
		}
		closeLauncher(t, other)
	}
}

// Of the date the CLI is only told that it was told where it would go into a result.
func TestToday(t *testing.T) {
	l := standinLauncher(t, func(o *Options) { o.Version = announcing; o.Env = append(o.Env, "TZ=Pacific/Kiritimati") })
	defer closeLauncher(t, l)
	result := prompt.Block{Type: "tool_result", Raw: json.RawMessage(`{"type":"tool_result"}`)}
	ends := func(blocks ...prompt.Block) prompt.Conversation {
		return prompt.Conversation{Messages: []prompt.Message{{Role: prompt.User, Content: blocks}}}
	}
	for _, c := range []prompt.Conversation{ends(result), ends(result, prompt.Text("a"))} {
		if got := l.today(c); len(got) != 1 {
			t.Errorf("%d entries for a conversation that ends in %d blocks", len(got), len(c.Messages[0].Content))
		}
	}
	if got := l.today(ends(prompt.Text("a"))); got != nil {
		t.Errorf("%d entries for a text", len(got))
	}
	l.options.Version = "2.1.207"
	if got := l.today(ends(result)); got != nil {
		t.Errorf("%d entries on 2.1.207", len(got))
	}
}
