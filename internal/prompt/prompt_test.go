package prompt

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBuilder(t *testing.T) {
	type add struct {
		role  Role
		texts []string
	}
	for _, test := range []struct {
		name   string
		adds   []add
		system []string
		want   Conversation
		err    error
	}{
		{name: "nothing", err: ErrNoMessages},
		{name: "system alone", system: []string{"s"}, err: ErrNoMessages},
		{name: "last is assistant", adds: []add{{User, []string{"a"}}, {Assistant, []string{"b"}}}, err: ErrLastAssistant},
		{name: "last is an empty assistant message", adds: []add{{User, []string{"a"}}, {Assistant, nil}}, err: ErrLastAssistant},
		{name: "last is empty", adds: []add{{User, []string{"a"}}, {User, []string{""}}}, err: ErrLastEmpty},
		{name: "last is white space", adds: []add{{User, []string{" \r\n\u00a0\ufeff\u2028"}}}, err: ErrLastEmpty},
		{name: "last has no blocks", adds: []add{{User, nil}}, err: ErrLastEmpty},
		{
			name:   "one message",
			system: []string{"be brief", "", "be kind\n"},
			adds:   []add{{User, []string{" a\r\n"}}},
			want:   Conversation{System: "be brief\n\nbe kind\n", Messages: []Message{{User, []Block{Text(" a\r\n")}}}},
		},
		{
			name: "messages of one role become one of several blocks",
			adds: []add{{User, []string{"a", "", "b"}}, {User, []string{"c"}}, {Assistant, []string{"d"}}, {Assistant, []string{"e"}}, {User, []string{"f"}}},
			want: Conversation{Messages: []Message{
				{User, []Block{Text("a"), Text("b"), Text("c")}},
				{Assistant, []Block{Text("d"), Text("e")}},
				{User, []Block{Text("f")}},
			}},
		},
		{
			name: "white space is no block of its own",
			adds: []add{{User, []string{" ", "\n", "a", "\t", "", "b\n", " "}}, {Assistant, []string{"\n"}}, {User, []string{"\u0085"}}},
			want: Conversation{Messages: []Message{{User, []Block{Text(" \na\t"), Text("b\n "), Text("\u0085")}}}},
		},
		{
			name: "an empty answer in between joins what is around it",
			adds: []add{{User, []string{"a"}}, {Assistant, []string{""}}, {User, []string{"b"}}},
			want: Conversation{Messages: []Message{{User, []Block{Text("a"), Text("b")}}}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b Builder
			for _, s := range test.system {
				b.AddSystem(s)
			}
			for _, a := range test.adds {
				b.Add(a.role, a.texts...)
			}
			got, err := b.Conversation()
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("conversation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBlockMarshals(t *testing.T) {
	image := json.RawMessage(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}`)
	got, err := json.Marshal([]Block{Text("a\n"), {Type: "image", Raw: image}})
	if want := `[{"type":"text","text":"a\n"},` + string(image) + `]`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	var b Builder
	b.AddBlocks(User, Block{Type: "image", Raw: image})
	if c, err := b.Conversation(); err != nil || len(c.Messages[0].Content) != 1 {
		t.Errorf("a message of an image alone: %+v, %v", c, err)
	}
}
