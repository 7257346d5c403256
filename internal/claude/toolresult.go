package claude

import (
	"encoding/json"
	"slices"
	"strings"

	"ocp/internal/prompt"
	"ocp/internal/transcript"
)

// blockResults returns the conversation with the text of each tool result as a block.
// The upstream takes it for the same; but to a plain string of the last message 2.1.332
// adds its reminder, and trims it for that, while behind a block it puts one of its own
// (and a line feed at the end of the block before).
func blockResults(c prompt.Conversation) prompt.Conversation {
	c.Messages = slices.Clone(c.Messages)
	for i := range c.Messages {
		content := slices.Clone(c.Messages[i].Content)
		for j, b := range content {
			if b.Type == "tool_result" {
				content[j].Raw = blockResult(b.Raw)
			}
		}
		c.Messages[i].Content = content
	}
	return c
}

// blockResult is a tool result in that form, if it has text.
func blockResult(raw json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	var text string
	if json.Unmarshal(raw, &fields) != nil || json.Unmarshal(fields["content"], &text) != nil || strings.TrimSpace(text) == "" {
		return raw
	}
	content, err := json.Marshal([]prompt.Block{prompt.Text(text)})
	if err != nil {
		return raw
	}
	fields["content"] = content
	changed, err := json.Marshal(fields)
	if err != nil {
		return raw
	}
	return changed
}

// nothing is an entry that the CLI leaves out of its request (both versions).
var nothing = transcript.Entry{Role: string(prompt.User), Content: []prompt.Block{prompt.Text(" ")}}

// entries is the conversation in the form the transcript takes it, with what was told
// before its last message: before an assistant's, the CLI would make a message of it.
//
// If the last entry had a tool result, the CLI would add a text, "Continue from where you
// left off." So a last message of results is followed by an entry of nothing, and one of
// results and more becomes two entries, which the CLI joins again.
func entries(c prompt.Conversation, told ...transcript.Entry) []transcript.Entry {
	list := make([]transcript.Entry, 0, len(c.Messages)+1+len(told))
	for i, m := range c.Messages {
		if i < len(c.Messages)-1 {
			list = append(list, transcript.Entry{Role: string(m.Role), Content: m.Content})
			continue
		}
		list = append(list, told...)
		results := resultsOf(m)
		last := transcript.Entry{Role: string(m.Role), Content: m.Content[results:]}
		if results > 0 {
			list = append(list, transcript.Entry{Role: string(m.Role), Content: m.Content[:results]})
		}
		if results == len(m.Content) {
			last = nothing
		}
		list = append(list, last)
	}
	return list
}

// resultsOf is how many tool results a message begins with.
func resultsOf(m prompt.Message) int {
	n := 0
	for n < len(m.Content) && m.Content[n].Type == "tool_result" {
		n++
	}
	return n
}
