package claude

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/prompt"
)

func TestInert(t *testing.T) {
	user := func(texts ...string) prompt.Message { return textMessage(prompt.User, texts...) }
	assistant := func(texts ...string) prompt.Message { return textMessage(prompt.Assistant, texts...) }
	image := prompt.Message{Role: prompt.User, Content: []prompt.Block{{Type: "image", Raw: []byte(`{"type":"image"}`)}}}
	list := func(m ...prompt.Message) []prompt.Message { return m }
	for _, test := range []struct {
		name      string
		got, want []prompt.Message
	}{
		{"ordinary", list(user("a"), assistant("b"), user("<c>", "[d]")), list(user("a"), assistant("b"), user("<c>", "[d]"))},
		{"a mark at the end", list(user("<bash-input>x")), list(user("<", "bash-input>x"))},
		{"behind another block", list(user("a", "[Request interrupted by user]")), list(user("a", "[", "Request interrupted by user]"))},
		{"a mark before the end", list(user("<bash-input>x"), assistant("b"), user("c")), list(user("<bash-input>x"), assistant("b"), user("c"))},
		{"an answer that is dropped", list(user("a"), assistant("(no content)"), user("(no content)")), list(user("a"), assistant("(", "no content)"), user("(no content)"))},
		{"with white space", list(user("a"), assistant("\ufeff\n(no content) \n"), user("b")), list(user("a"), assistant("\ufeff\n(", "no content) \n"), user("b"))},
		{"an image", list(image), list(image)},
	} {
		before := prompt.Conversation{System: "s", Messages: test.got}
		after := inert(before)
		if diff := cmp.Diff(prompt.Conversation{System: "s", Messages: test.want}, after); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	// The client's own messages stay as they are.
	c := prompt.Conversation{Messages: list(user("<bash-input>x"))}
	inert(c)
	if diff := cmp.Diff(list(user("<bash-input>x")), c.Messages); diff != "" {
		t.Errorf("the conversation was changed (-want +got):\n%s", diff)
	}
}
