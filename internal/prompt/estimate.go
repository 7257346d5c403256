package prompt

import (
	"encoding/json"
	"unicode/utf8"
)

// The rules by which tokens are estimated. No tokenizer of Claude's models is public:
// they are meant to be near the truth for English text, and rather above it than below.
const (
	asciiPer2Tokens  = 7    // ASCII characters in two tokens; any other character is a token
	messageTokens    = 4    // around each message, and around the system text
	imageTokens      = 1600 // an image of the size beyond which the upstream scales it down
	pdfTokens        = 1500 // a PDF, to which its size adds
	pdfBytesPerToken = 30
)

// Tally estimates the tokens of a text that comes in pieces. The zero value is ready.
type Tally struct {
	ascii, other int
}

// Add takes the next piece.
func (t *Tally) Add(text string) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c < utf8.RuneSelf:
			t.ascii++
		case utf8.RuneStart(c):
			t.other++
		}
	}
}

// Tokens is the estimate so far; it is zero only if there was no text.
func (t *Tally) Tokens() int {
	return (2*t.ascii+asciiPer2Tokens-1)/asciiPer2Tokens + t.other
}

// EstimateText estimates the tokens of a text.
func EstimateText(text string) int {
	var t Tally
	t.Add(text)
	return t.Tokens()
}

// EstimateTokens estimates the tokens of all that the model is to see.
func (c Conversation) EstimateTokens() int {
	n := 0
	if c.System != "" {
		n += messageTokens + EstimateText(c.System)
	}
	for _, m := range c.Messages {
		n += messageTokens
		for _, b := range m.Content {
			n += b.estimate()
		}
	}
	return n
}

func (b Block) estimate() int {
	if b.Raw == nil {
		return EstimateText(b.Text)
	}
	var v any
	if err := json.Unmarshal(b.Raw, &v); err != nil { // its dialect has checked it
		return EstimateText(string(b.Raw))
	}
	return estimateValue(v)
}

// estimateValue estimates a value of a block, images and PDFs by rules of their own.
func estimateValue(v any) int {
	n := 0
	switch v := v.(type) {
	case string:
		return EstimateText(v)
	case []any:
		for _, e := range v {
			n += estimateValue(e)
		}
	case map[string]any:
		source, _ := v["source"].(map[string]any)
		if source["type"] == "base64" {
			if v["type"] == "image" {
				return imageTokens
			}
			data, _ := source["data"].(string)
			return pdfTokens + len(data)*3/4/pdfBytesPerToken
		}
		for key, e := range v {
			n += EstimateText(key) + estimateValue(e)
		}
	default: // a number, true, false or null
		n = 1
	}
	return n
}
