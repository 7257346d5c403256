package openai

import (
	"encoding/json"
	"fmt"
	"slices"

	"ocp/internal/prompt"
)

// origin is whose content it is, which says what parts it may have.
type origin int

const (
	textOnly origin = iota // of system texts and tool results
	fromUser
	fromAssistant
)

// content returns the blocks of a message's content. Every text part stays a block of
// its own.
func (t *thread) content(message object, path string, from origin) ([]prompt.Block, error) {
	path += ".content"
	raw, ok := message.get("content")
	if !ok {
		return nil, badRequest(path, path+" is required: send a string or an array of parts")
	}
	return t.parts(raw, path, from)
}

// parts returns the blocks of a string or an array of parts.
func (t *thread) parts(raw json.RawMessage, path string, from origin) ([]prompt.Block, error) {
	switch typeOf(raw) {
	case typeString:
		text, err := asString(raw, path)
		return []prompt.Block{prompt.Text(text)}, err
	case typeArray:
	default:
		return nil, wrongType(path, "a string or an array of parts", raw)
	}
	list, err := asArray(raw, path)
	if err != nil {
		return nil, err
	}
	blocks := make([]prompt.Block, 0, len(list))
	for i, raw := range list {
		path := fmt.Sprintf("%s[%d]", path, i)
		part, err := asObject(raw, path)
		if err != nil {
			return nil, err
		}
		block, err := t.part(part, path, from)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}

// partTypes are the types of parts by whose content they may be in. Both APIs' names
// are taken in both.
var partTypes = map[origin][]string{
	textOnly:      {"text", "input_text", "output_text"},
	fromUser:      {"text", "input_text", "output_text", "image_url", "input_image", "file", "input_file"},
	fromAssistant: {"text", "input_text", "output_text", "refusal"},
}

func (t *thread) part(part object, path string, from origin) (prompt.Block, error) {
	kind, err := requiredString(part, "type", path)
	if err != nil {
		return prompt.Block{}, err
	}
	if !slices.Contains(partTypes[from], kind) {
		return prompt.Block{}, unsupported(path+".type", fmt.Sprintf("%s.type is %s, which is not supported in this message", path, quote(kind)))
	}
	switch kind {
	case "image_url", "input_image":
		return t.imagePart(part, path)
	case "file", "input_file":
		return t.filePart(part, path)
	case "refusal":
		return textPart(part, "refusal", path)
	}
	return textPart(part, "text", path)
}

func textPart(part object, name, path string) (prompt.Block, error) {
	raw, ok := part.get(name)
	if !ok {
		return prompt.Block{}, badRequest(path+"."+name, fmt.Sprintf("%s.%s is required in a part of this type", path, name))
	}
	text, err := asString(raw, path+"."+name)
	return prompt.Text(text), err
}

// imagePart takes {"image_url":{"url":…}} of chat completions and {"image_url":…} of
// responses.
func (t *thread) imagePart(part object, path string) (prompt.Block, error) {
	if _, ok := part.get("file_id"); ok {
		return prompt.Block{}, noFiles(path + ".file_id")
	}
	holder := part
	raw, ok := part.get("image_url")
	if !ok {
		return prompt.Block{}, badRequest(path+".image_url", path+".image_url is required in an image part")
	}
	path += ".image_url"
	if typeOf(raw) == typeObject {
		var err error
		if holder, err = asObject(raw, path); err != nil {
			return prompt.Block{}, err
		}
		if raw, ok = holder.get("url"); !ok {
			return prompt.Block{}, badRequest(path+".url", path+".url is required in an image part")
		}
		path += ".url"
	}
	url, err := asString(raw, path)
	if err != nil {
		return prompt.Block{}, err
	}
	detail, err := optionalString(holder, "detail", path)
	if err != nil {
		return prompt.Block{}, err
	}
	if detail != "" && detail != "auto" {
		t.ignored = append(t.ignored, "image_url.detail")
	}
	return imageBlock(url, path)
}

// filePart takes {"file":{…}} of chat completions and the flat form of responses.
func (t *thread) filePart(part object, path string) (prompt.Block, error) {
	if raw, ok := part.get("file"); ok {
		path += ".file"
		var err error
		if part, err = asObject(raw, path); err != nil {
			return prompt.Block{}, err
		}
	}
	if _, ok := part.get("file_id"); ok {
		return prompt.Block{}, noFiles(path + ".file_id")
	}
	if _, ok := part.get("file_url"); ok {
		return prompt.Block{}, noFetching(path + ".file_url")
	}
	data, err := requiredString(part, "file_data", path)
	if err != nil {
		return prompt.Block{}, err
	}
	title, err := optionalString(part, "filename", path)
	if err != nil {
		return prompt.Block{}, err
	}
	return documentBlock(data, title, path+".file_data")
}
