package prompt

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func conversation(texts ...string) Conversation {
	c := Conversation{System: "s"}
	for i, text := range texts {
		role := User
		if i%2 == 1 {
			role = Assistant
		}
		c.Messages = append(c.Messages, Message{Role: role, Content: []Block{Text(text)}})
	}
	return c
}

func TestHistoryIsWhatWasAnswered(t *testing.T) {
	first := Request{Caller: "k", Model: "m", Effort: "low", MaxTokens: 7, Conversation: conversation("a", "b", "c")}
	answered := first.Answered("d")
	next := first
	next.Conversation = conversation("a", "b", "c", "d", "e")
	if next.History() != answered {
		t.Error("a request that goes on is not known")
	}
	for name, change := range map[string]func(*Request){
		"caller":      func(r *Request) { r.Caller = "other" },
		"model":       func(r *Request) { r.Model = "other" },
		"effort":      func(r *Request) { r.Effort = "high" },
		"limit":       func(r *Request) { r.MaxTokens = 0 },
		"system":      func(r *Request) { r.System = "s " },
		"edited":      func(r *Request) { r.Messages[0].Content[0].Text = "A" },
		"answer":      func(r *Request) { r.Messages[3].Content[0].Text = "d\n" },
		"another":     func(r *Request) { r.Messages = append(r.Messages, r.Messages[0]) },
		"cut":         func(r *Request) { r.Messages = r.Messages[2:] },
		"retried":     func(r *Request) { r.Messages = r.Messages[:3] },
		"split":       func(r *Request) { r.Messages[0].Content = []Block{Text(""), Text("a")} },
		"role":        func(r *Request) { r.Messages[3].Role = User },
		"a block":     func(r *Request) { r.Messages[2].Content[0].Raw = []byte(`{}`) },
		"model moves": func(r *Request) { r.Model, r.Effort = "ml", "ow" },
	} {
		other := next
		other.Conversation = conversation("a", "b", "c", "d", "e")
		change(&other)
		if other.History() == answered {
			t.Errorf("%s: a request that does not go on is taken for one that does", name)
		}
	}
}

// Two requests share a digest only if they are the same.
func TestDigestTellsApart(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "a", "b", "ab", "\x00", "aa"})
	draw := func(t *rapid.T, name string) Request {
		texts := rapid.SliceOfN(text, 1, 4).Draw(t, name)
		return Request{Caller: text.Draw(t, name+" caller"), Model: text.Draw(t, name+" model"), Conversation: conversation(texts...)}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "a"), draw(t, "b")
		same := a.Caller == b.Caller && a.Model == b.Model && slices.EqualFunc(a.Messages, b.Messages, func(x, y Message) bool {
			return x.Content[0].Text == y.Content[0].Text
		})
		if (a.Answered("x") == b.Answered("x")) != same {
			t.Errorf("%+v and %+v", a, b)
		}
	})
}
