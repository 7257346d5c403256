package prompt

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestImage(t *testing.T) {
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for media, content := range map[string]string{
		"image/png": "\x89PNG\r\n\x1a\n.", "image/jpeg": "\xff\xd8\xff.", "image/gif": "GIF87a.", "image/webp": "RIFF\x00\x00\x00\x00WEBP",
	} {
		data := encode(content)
		block, err := Image(media, data[:4]+"\r\n"+data[4:])
		if err != nil || string(block.Raw) != `{"type":"image","source":{"type":"base64","media_type":"`+media+`","data":"`+data+`"}}` || !IsImage(media) {
			t.Errorf("%s: got %s (%v)", media, block.Raw, err)
		}
		for other := range images {
			if _, err := Image(other, data); (err == nil) != (other == media) {
				t.Errorf("%s as %s: %v", media, other, err)
			}
		}
	}
	for data, says := range map[string]string{
		"": "is empty", "iVBORw0KGgo": "not valid base64", "data:image/png;base64,iVBORw0KGgo=": "not valid base64",
		encode("\x89PNG\r\n\x1a\n" + strings.Repeat("x", maxImage)): "the most is",
	} {
		if _, err := Image("image/png", data); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.20s: got %v", data, err)
		}
	}
	if _, err := Image("image/tiff", "AAAA"); err == nil || IsImage("image/tiff") {
		t.Error("a TIFF is taken")
	}
}

func TestEstimate(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "1234567": 2, "12345678": 3, "日本語": 3, "日本語a": 4} {
		if got := EstimateText(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
		var tally Tally
		for _, r := range text {
			tally.Add(string(r))
		}
		if got := tally.Tokens(); got != want {
			t.Errorf("%q in pieces: got %d, want %d", text, got, want)
		}
	}
	image := Block{Type: "image", Raw: []byte(`{"type":"image","source":{"type":"base64","data":"` + strings.Repeat("A", 9000) + `"}}`)}
	pdf := Block{Type: "document", Raw: []byte(`{"type":"document","source":{"type":"base64","data":"` + strings.Repeat("A", 4000) + `"}}`)}
	call := Block{Type: "tool_use", Raw: []byte(`{"type":"tool_use","input":{"a":"1234567","b":[1,true,null]}}`)}
	for name, test := range map[string]struct {
		c    Conversation
		want int
	}{
		"nothing":      {Conversation{}, 0},
		"system":       {Conversation{System: "1234567"}, 4 + 2},
		"text":         {Conversation{Messages: []Message{{User, []Block{Text("1234567"), Text("1")}}}}, 4 + 2 + 1},
		"image":        {Conversation{Messages: []Message{{User, []Block{image}}}}, 4 + 1600},
		"PDF":          {Conversation{Messages: []Message{{User, []Block{pdf}}}}, 4 + 1500 + 100},
		"call":         {Conversation{Messages: []Message{{Assistant, []Block{call}}}}, 4 + 2 + 3 + 2 + 1 + 2 + 1 + 3},
		"not a block?": {Conversation{Messages: []Message{{User, []Block{{Type: "x", Raw: []byte("1234567{")}}}}}, 4 + 3},
	} {
		if got := test.c.EstimateTokens(); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}
