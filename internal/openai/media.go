package openai

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"ocp/internal/prompt"
)

// maxTitle bounds a document's title in characters, as the Messages API does.
const maxTitle = 500

// imageBlock makes a block of a data URL.
func imageBlock(url, path string) (prompt.Block, error) {
	media, data, err := dataURL(url, path)
	if err != nil {
		return prompt.Block{}, err
	}
	if media == "image/jpg" {
		media = "image/jpeg"
	}
	if !prompt.IsImage(media) {
		return prompt.Block{}, unsupported(path, fmt.Sprintf("%s is of type %s: images can be image/png, image/jpeg, image/gif or image/webp", path, quote(media)))
	}
	block, err := prompt.Image(media, data)
	if err != nil {
		return prompt.Block{}, badRequest(path, path+" "+err.Error())
	}
	return block, nil
}

// documentBlock makes a block of the data URL of a file, which stands at path.
func documentBlock(url, title, path string) (block prompt.Block, err error) {
	media, data, err := dataURL(url, path)
	if err != nil {
		return block, err
	}
	if utf8.RuneCountInString(title) > maxTitle {
		return block, badRequest(path, fmt.Sprintf("the filename of %s is longer than %d characters", path, maxTitle))
	}
	document := prompt.Document{Title: title}
	switch media {
	case "application/pdf":
		if block, err = document.PDF(data); err != nil {
			return block, badRequest(path, path+" "+err.Error())
		}
		return block, nil
	case "text/plain":
		text, err := base64.StdEncoding.DecodeString(data)
		switch {
		case err != nil:
			return block, badRequest(path, path+" is not valid base64")
		case !utf8.Valid(text):
			return block, badRequest(path, path+" is not text in UTF-8")
		case strings.TrimSpace(string(text)) == "":
			return block, badRequest(path, path+" is an empty file")
		}
		return document.Text(string(text)), nil
	}
	return block, unsupported(path, fmt.Sprintf("%s is of type %s: files can be application/pdf or text/plain", path, quote(media)))
}

// dataURL returns the media type, in lower case and without parameters, and the data of
// a base64 data URL, still in base64.
func dataURL(url, path string) (media, data string, err error) {
	if len(url) < 5 || !strings.EqualFold(url[:5], "data:") {
		if scheme, _, ok := strings.Cut(url, "://"); ok && len(scheme) < 10 {
			return "", "", noFetching(path)
		}
		return "", "", badRequest(path, path+" must be a data URL: data:TYPE;base64,DATA")
	}
	head, data, ok := strings.Cut(url[5:], ",")
	params := strings.Split(head, ";")
	if !ok || len(params) < 2 || !strings.EqualFold(strings.TrimSpace(params[len(params)-1]), "base64") {
		return "", "", badRequest(path, path+" must be a data URL in base64: data:TYPE;base64,DATA")
	}
	return strings.ToLower(strings.TrimSpace(params[0])), data, nil
}

// noFetching refuses what would have to be fetched.
func noFetching(param string) *Error {
	return unsupported(param, param+" is an address: nothing is fetched here, send the data itself as a data URL (data:TYPE;base64,DATA)")
}

// noFiles refuses the id of an uploaded file.
func noFiles(param string) *Error {
	return unsupported(param, param+" is not supported: there are no uploaded files here, send the data itself as a data URL (data:TYPE;base64,DATA)")
}
