package claude

import (
	"testing"

	"ocp/internal/prompt"
	"ocp/internal/transcript"
)

// The hashes are those that 2.1.332 wrote for these messages.
func TestMessageHash(t *testing.T) {
	for _, test := range []struct {
		message prompt.Message
		want    string
	}{
		{textMessage(prompt.User, "one"), "0c76c7287c137aa9733e43c381ed84cd377824a7270f0e3c96851009a8e434e2"},
		{textMessage(prompt.Assistant, "two"), "ad51ec7b42475ddf50320f31d9c6bda46d802e53cf1bf813ef0ab0f24946c7ad"},
	} {
		if got := messageHash(test.message); got != test.want {
			t.Errorf("%+v: %s, want %s", test.message, got, test.want)
		}
	}
}

func TestCanonical(t *testing.T) {
	for _, test := range []struct {
		block prompt.Block
		want  string
	}{
		{prompt.Text("<a&b> \u2028\u2029 \\u2028 \\\\u2028 \x01\b\f\n\r\t\x7f \"é\""), `{"text":"<a&b> ` + "\u2028\u2029" + ` \\u2028 \\\\u2028 \u0001\b\f\n\r\t` + "\x7f" + ` \"é\"","type":"text"}`},
		{prompt.Block{Type: "image", Raw: []byte(`{"type": "image", "source": {"type":"base64", "data":"A<=="}}`)}, `{"source":{"data":"A<==","type":"base64"},"type":"image"}`},
	} {
		if got := string(canonical(test.block)); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}

func textMessage(role prompt.Role, texts ...string) prompt.Message {
	m := prompt.Message{Role: role}
	for _, text := range texts {
		m.Content = append(m.Content, prompt.Text(text))
	}
	return m
}

func TestInputCheck(t *testing.T) {
	one, two, three := textMessage(prompt.User, "one"), textMessage(prompt.Assistant, "two"), textMessage(prompt.User, "three", "four")
	blob := func(hash, role string, texts ...string) transcript.Record {
		r := transcript.Record{Type: "api-request-blob", Hash: hash, Message: &transcript.Message{Role: role}}
		for _, s := range texts {
			r.Message.Content = append(r.Message.Content, transcript.Block{Type: "text", Text: s})
		}
		return r
	}
	request := func(hashes ...string) transcript.Record {
		return transcript.Record{Type: "api-request", Tail: hashes}
	}
	h1, h2, h3 := messageHash(one), messageHash(two), messageHash(three)
	const own = "<system-reminder>x"
	for _, test := range []struct {
		name          string
		records       []transcript.Record
		checks, diffs int
	}{
		{"nothing recorded", nil, 0, 0},
		{"no request recorded", []transcript.Record{blob("x", "user", "one")}, 0, 0},
		{"all as they stand", []transcript.Record{request(h1, h2, h3)}, 3, 0},
		{"with reminders", []transcript.Record{blob("x", "user", own, "three", "four"), request(h1, h2, "x")}, 3, 0},
		{"reminders first", []transcript.Record{blob("x", "user", own, own, "one"), request("x", h2, h3)}, 3, 0},
		{"the CLI's own system messages", []transcript.Record{blob("e", "system"), blob("x", "system", own), request(h1, "e", h2, h3, "x")}, 3, 0},
		{"a hash of nothing known", []transcript.Record{request(h1, "y", h3)}, 3, 1},
		{"something added", []transcript.Record{blob("x", "user", "hello", "three", "four"), request(h1, h2, "x")}, 3, 1},
		{"something behind", []transcript.Record{blob("x", "user", "three", "four", own), request(h1, h2, "x")}, 3, 1},
		{"something missing", []transcript.Record{blob("x", "user", own, "four"), request(h1, h2, "x")}, 3, 1},
		{"another text", []transcript.Record{blob("x", "user", "three", "four "), request(h1, h2, "x")}, 3, 1},
		{"another role", []transcript.Record{blob("x", "assistant", "three", "four"), request(h1, h2, "x")}, 3, 1},
		{"swapped", []transcript.Record{request(h3, h2, h1)}, 3, 2},
		{"one too few", []transcript.Record{request(h1, h2)}, 3, 1},
		{"one too many", []transcript.Record{request(h1, h2, h3, h1)}, 4, 1},
		{"a continuation", []transcript.Record{request(h1, h2, h3), {Type: "api-request", Keep: 3, Tail: []string{"y"}}, request("y")}, 3, 0},
	} {
		check := newInputCheck(prompt.Conversation{Messages: []prompt.Message{one, two, three}})
		for _, r := range test.records {
			check.record(r)
		}
		if checks, diffs := check.result(); checks != test.checks || diffs != test.diffs {
			t.Errorf("%s: %d checks, %d diffs; want %d, %d", test.name, checks, diffs, test.checks, test.diffs)
		}
	}
}
