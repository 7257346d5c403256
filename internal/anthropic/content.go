package anthropic

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"ocp/internal/prompt"
	"ocp/internal/wire"
)

// The blocks that each place may hold.
var (
	userBlocks      = []string{"text", "image", "document", "search_result", "tool_result"}
	assistantBlocks = []string{"text", "tool_use", "thinking", "redacted_thinking"}
	resultBlocks    = []string{"text", "image", "document", "search_result"}
	sourceBlocks    = []string{"text", "image"}
)

// content decodes a message's content.
func (d *decoder) content(raw json.RawMessage, path string, role prompt.Role, calls *pairing) ([]prompt.Block, error) {
	allowed := userBlocks
	if role == prompt.Assistant {
		allowed = assistantBlocks
	}
	return d.blocks(raw, path, allowed, calls)
}

// blocks decodes a string or an array of blocks of the types allowed. Blocks are made
// anew of the fields known, so that nothing unknown gets any further.
func (d *decoder) blocks(raw json.RawMessage, path string, allowed []string, calls *pairing) ([]prompt.Block, error) {
	switch wire.TypeOf(raw) {
	case wire.Text:
		text, err := wire.AsString(raw, path)
		return []prompt.Block{prompt.Text(text)}, err
	case wire.Array:
	default:
		return nil, wire.WrongType(path, "a string or an array of blocks", raw)
	}
	list, err := wire.AsArray(raw, path)
	if err != nil {
		return nil, err
	}
	blocks := make([]prompt.Block, 0, len(list))
	for i, raw := range list {
		path := fmt.Sprintf("%s.%d", path, i)
		o, err := wire.AsObject(raw, path)
		if err != nil {
			return nil, err
		}
		block, err := d.block(o, path, allowed, calls)
		if err != nil {
			return nil, err
		}
		if block.Type != "" {
			blocks = append(blocks, block)
		}
	}
	return blocks, nil
}

// block decodes a block. It returns none for thinking: only the model that thought it
// accepts it back, and then only beside what the CLI has dropped.
func (d *decoder) block(o wire.Object, path string, allowed []string, calls *pairing) (prompt.Block, error) {
	kind, err := required(o, path, "type")
	if err != nil {
		return prompt.Block{}, err
	}
	if !slices.Contains(allowed, kind) {
		return prompt.Block{}, unknown(path+".type", kind, allowed)
	}
	switch kind {
	case "text":
		text, err := d.text(o, path, "messages.content")
		return prompt.Text(text), err
	case "image":
		return d.image(o, path)
	case "document":
		return d.document(o, path)
	case "search_result":
		return d.searchResult(o, path)
	case "tool_use":
		return d.toolUse(o, path, calls)
	case "tool_result":
		return d.toolResult(o, path, calls)
	}
	d.ignore("messages.content." + kind)
	return prompt.Block{}, nil
}

// source returns a block's source and its type.
func source(o wire.Object, path string, kinds ...string) (wire.Object, string, error) {
	path += ".source"
	raw, ok := o.Get("source")
	if !ok {
		return nil, "", bad(path, "is required")
	}
	src, err := wire.AsObject(raw, path)
	if err != nil {
		return nil, "", err
	}
	kind, err := required(src, path, "type")
	if err != nil {
		return nil, "", err
	}
	if !slices.Contains(kinds, kind) {
		e := unknown(path+".type", kind, kinds)
		if kind == "url" || kind == "file" {
			e.Message += "; nothing is fetched from elsewhere"
		}
		return nil, "", e
	}
	return src, kind, nil
}

func (d *decoder) image(o wire.Object, path string) (prompt.Block, error) {
	d.rest(o, "messages.content", "type", "source")
	src, _, err := source(o, path, "base64")
	if err != nil {
		return prompt.Block{}, err
	}
	path += ".source"
	mediaType, err := required(src, path, "media_type")
	if err != nil {
		return prompt.Block{}, err
	}
	if !prompt.IsImage(mediaType) {
		return prompt.Block{}, unknown(path+".media_type", mediaType, []string{"image/jpeg", "image/png", "image/gif", "image/webp"})
	}
	data, err := required(src, path, "data")
	if err != nil {
		return prompt.Block{}, err
	}
	block, err := prompt.Image(mediaType, data)
	if err != nil {
		return prompt.Block{}, bad(path+".data", err.Error())
	}
	return block, nil
}

// maxTitle bounds a document's title in characters, as the upstream does.
const maxTitle = 500

func (d *decoder) document(o wire.Object, path string) (block prompt.Block, err error) {
	d.rest(o, "messages.content", "type", "source", "title", "context")
	var doc prompt.Document
	if doc.Title, err = optional(o, path, "title"); err != nil {
		return block, err
	}
	if utf8.RuneCountInString(doc.Title) > maxTitle {
		return block, bad(path+".title", fmt.Sprintf("is longer than %d characters", maxTitle))
	}
	if doc.Context, err = optional(o, path, "context"); err != nil {
		return block, err
	}
	src, kind, err := source(o, path, "base64", "text", "content")
	if err != nil {
		return block, err
	}
	path += ".source"
	if kind == "content" {
		raw, ok := src.Get("content")
		if !ok {
			return block, bad(path+".content", "is required")
		}
		blocks, err := d.blocks(raw, path+".content", sourceBlocks, nil)
		if err != nil {
			return block, err
		}
		if blocks = withText(blocks); len(blocks) == 0 {
			return block, bad(path+".content", "is empty")
		}
		return doc.Blocks(blocks), nil
	}
	want := map[string]string{"base64": "application/pdf", "text": "text/plain"}[kind]
	mediaType, err := required(src, path, "media_type")
	if err != nil {
		return block, err
	}
	if mediaType != want {
		return block, unknown(path+".media_type", mediaType, []string{want})
	}
	data, err := required(src, path, "data")
	if err != nil {
		return block, err
	}
	if kind == "text" {
		if strings.TrimSpace(data) == "" {
			return block, bad(path+".data", "must hold more than white space")
		}
		return doc.Text(data), nil
	}
	if block, err = doc.PDF(data); err != nil {
		return block, bad(path+".data", err.Error())
	}
	return block, nil
}

// withText drops text blocks without text, which the upstream refuses.
func withText(blocks []prompt.Block) []prompt.Block {
	return slices.DeleteFunc(blocks, func(b prompt.Block) bool { return b.Raw == nil && b.Text == "" })
}

func (d *decoder) searchResult(o wire.Object, path string) (prompt.Block, error) {
	d.rest(o, "messages.content", "type", "source", "title", "content")
	title, err := required(o, path, "title")
	if err != nil {
		return prompt.Block{}, err
	}
	src, err := required(o, path, "source")
	if err != nil {
		return prompt.Block{}, err
	}
	raw, ok := o.Get("content")
	if !ok {
		return prompt.Block{}, bad(path+".content", "is required")
	}
	blocks, err := d.blocks(raw, path+".content", []string{"text"}, nil)
	if err != nil {
		return prompt.Block{}, err
	}
	if blocks = withText(blocks); len(blocks) == 0 {
		return prompt.Block{}, bad(path+".content", "is empty")
	}
	return rawBlock("search_result", struct {
		Type    string         `json:"type"`
		Source  string         `json:"source"`
		Title   string         `json:"title"`
		Content []prompt.Block `json:"content"`
	}{"search_result", src, title, blocks}), nil
}

// What the upstream takes for an id and for a name.
var (
	toolID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
)

// matching returns a required string of the form given.
func matching(o wire.Object, path, field string, form *regexp.Regexp) (string, error) {
	s, err := required(o, path, field)
	if err == nil && !form.MatchString(s) {
		err = bad(path+"."+field, fmt.Sprintf("is %s: it must match %s", wire.Quote(s), form))
	}
	return s, err
}

func (d *decoder) toolUse(o wire.Object, path string, calls *pairing) (prompt.Block, error) {
	d.rest(o, "messages.content", "type", "id", "name", "input")
	id, err := matching(o, path, "id", toolID)
	if err != nil {
		return prompt.Block{}, err
	}
	name, err := matching(o, path, "name", toolName)
	if err != nil {
		return prompt.Block{}, err
	}
	input, ok := o.Get("input")
	if !ok {
		return prompt.Block{}, bad(path+".input", "is required")
	}
	if err := dict(input, path+".input"); err != nil {
		return prompt.Block{}, err
	}
	return rawBlock("tool_use", struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}{"tool_use", id, name, input}), calls.use(id, path+".id")
}

func (d *decoder) toolResult(o wire.Object, path string, calls *pairing) (prompt.Block, error) {
	d.rest(o, "messages.content", "type", "tool_use_id", "content", "is_error")
	id, err := matching(o, path, "tool_use_id", toolID)
	if err != nil {
		return prompt.Block{}, err
	}
	result := struct {
		Type    string `json:"type"`
		ID      string `json:"tool_use_id"`
		Content any    `json:"content,omitempty"`
		IsError bool   `json:"is_error,omitempty"`
	}{Type: "tool_result", ID: id}
	if raw, ok := o.Get("is_error"); ok {
		if result.IsError, err = wire.AsBool(raw, path+".is_error"); err != nil {
			return prompt.Block{}, err
		}
	}
	if raw, ok := o.Get("content"); ok {
		blocks, err := d.blocks(raw, path+".content", resultBlocks, nil)
		if err != nil {
			return prompt.Block{}, err
		}
		if blocks = withText(blocks); len(blocks) > 0 {
			result.Content = blocks
		}
		if wire.TypeOf(raw) == wire.Text {
			result.Content = raw
		}
	}
	return rawBlock("tool_result", result), calls.result(id, path+".tool_use_id")
}

func rawBlock(kind string, v any) prompt.Block {
	raw, err := json.Marshal(v)
	if err != nil { // strings and valid JSON always marshal
		panic(err)
	}
	return prompt.Block{Type: kind, Raw: raw}
}
