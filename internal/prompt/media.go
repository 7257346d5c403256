package prompt

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxImage is the size of an image, in bytes, beyond which the upstream refuses it.
const maxImage = 5 << 20

// images are the media types of the images that the upstream takes, with what tells
// each of them by its first bytes.
var images = map[string]func(head []byte) bool{
	"image/png":  func(head []byte) bool { return bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")) },
	"image/jpeg": func(head []byte) bool { return bytes.HasPrefix(head, []byte("\xff\xd8\xff")) },
	"image/gif": func(head []byte) bool {
		return bytes.HasPrefix(head, []byte("GIF87a")) || bytes.HasPrefix(head, []byte("GIF89a"))
	},
	"image/webp": func(head []byte) bool {
		return len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP"
	},
}

// IsImage reports whether the upstream takes images of a media type.
func IsImage(mediaType string) bool { return images[mediaType] != nil }

// Image makes a block of an image in base64. The error says what is wrong with it in
// words for the client, without a subject.
func Image(mediaType, data string) (Block, error) {
	is, ok := images[mediaType]
	if !ok {
		return Block{}, errors.New("is not of a type that can be used: send image/png, image/jpeg, image/gif or image/webp")
	}
	content, err := decode(data)
	switch {
	case err != nil:
		return Block{}, err
	case !is(content):
		return Block{}, fmt.Errorf("does not begin as %s must: check the media type", mediaType)
	case len(content) > maxImage:
		return Block{}, fmt.Errorf("is an image of %d bytes: the most is %d", len(content), maxImage)
	}
	return rawBlock(mediaBlock{Type: "image", Source: base64Source(mediaType, data)}), nil
}

// Document is what a document may bear beside its content, and makes its block.
type Document struct {
	Title, Context string
}

// PDF makes a block of a PDF in base64. The error is as Image's.
func (d Document) PDF(data string) (Block, error) {
	content, err := decode(data)
	if err != nil {
		return Block{}, err
	}
	// Readers allow some bytes before the mark.
	if !bytes.Contains(content[:min(len(content), 1024)], []byte("%PDF-")) {
		return Block{}, errors.New("does not begin as application/pdf must: check the media type")
	}
	return d.block(base64Source("application/pdf", data)), nil
}

// Text makes a block of a document of plain text.
func (d Document) Text(text string) Block {
	return d.block(mediaSource{Type: "text", MediaType: "text/plain", Data: text})
}

// Blocks makes a block of a document of text and image blocks.
func (d Document) Blocks(blocks []Block) Block {
	return d.block(mediaSource{Type: "content", Content: blocks})
}

func (d Document) block(source mediaSource) Block {
	return rawBlock(mediaBlock{Type: "document", Source: source, Title: d.Title, Context: d.Context})
}

func decode(data string) ([]byte, error) {
	content, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, errors.New("is not valid base64: use the standard alphabet, with padding and without a data: prefix")
	}
	if len(content) == 0 {
		return nil, errors.New("is empty")
	}
	return content, nil
}

// mediaBlock is the Messages API's form of an image or a document.
type mediaBlock struct {
	Type    string      `json:"type"`
	Source  mediaSource `json:"source"`
	Title   string      `json:"title,omitempty"`
	Context string      `json:"context,omitempty"`
}

type mediaSource struct {
	Type      string  `json:"type"`
	MediaType string  `json:"media_type,omitempty"`
	Data      string  `json:"data,omitempty"`
	Content   []Block `json:"content,omitempty"`
}

// base64Source is a source of valid base64, whose lines are joined.
func base64Source(mediaType, data string) mediaSource {
	return mediaSource{Type: "base64", MediaType: mediaType, Data: joinLines.Replace(data)}
}

var joinLines = strings.NewReplacer("\r", "", "\n", "")

func rawBlock(b mediaBlock) Block {
	raw, err := json.Marshal(b)
	if err != nil { // strings always marshal
		panic(err)
	}
	return Block{Type: b.Type, Raw: raw}
}
