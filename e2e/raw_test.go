package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
)

// chatBody is a chat completion request written by hand, for what no SDK would send or
// would send in one way only.
type chatBody struct {
	Model    string        `json:"model"`
	Stream   bool          `json:"stream,omitempty"`
	Messages []sentMessage `json:"messages"`
}

// sentMessage is a message as the client sends it. Content is a string, parts or nil.
type sentMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

type textPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// rawReply is a whole HTTP response; status 0 means that there was none, and body says
// why.
type rawReply struct {
	status int
	header http.Header
	body   []byte
}

// postChat asks for a chat completion; body is marshalled unless it is []byte.
func (p *proxy) postChat(ctx context.Context, body any) rawReply {
	data, ok := body.([]byte)
	if !ok {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return rawReply{body: []byte(err.Error())}
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/v1/chat/completions", bytes.NewReader(data))
	if err != nil {
		return rawReply{body: []byte(err.Error())}
	}
	req.Header.Set("Content-Type", "application/json")
	return p.do(req)
}

// do sends a request and reads the whole response.
func (p *proxy) do(req *http.Request) rawReply {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return rawReply{body: []byte(err.Error())}
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		return rawReply{body: []byte(err.Error())}
	}
	return rawReply{resp.StatusCode, resp.Header, all}
}

// text is the answer of a completion; empty if the reply is none.
func (r rawReply) text() string {
	var completion struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if json.Unmarshal(r.body, &completion) != nil || len(completion.Choices) == 0 {
		return ""
	}
	return completion.Choices[0].Message.Content
}
