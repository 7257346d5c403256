package prompt

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
)

// Digest stands for a conversation and all that another request must share with it to
// go on with it: whose it is, the system text, and what its session was launched for.
type Digest [sha256.Size]byte

// Answered is the digest of the request's conversation with that answer behind it.
func (r Request) Answered(answer string) Digest {
	return r.digest(append(r.Messages[:len(r.Messages):len(r.Messages)],
		Message{Role: Assistant, Content: []Block{Text(answer)}}))
}

// History is the digest of the conversation without its last message. It is another
// request's Answered if this one is that one's conversation, its answer, and one more
// message.
func (r Request) History() Digest { return r.digest(r.Messages[:len(r.Messages)-1]) }

func (r Request) digest(messages []Message) Digest {
	d := digester{sha256.New()}
	d.text(r.Caller)
	d.text(r.Model)
	d.text(r.Effort)
	d.number(r.MaxTokens)
	d.text(r.System)
	d.number(len(messages))
	for _, m := range messages {
		d.text(string(m.Role))
		d.number(len(m.Content))
		for _, b := range m.Content {
			d.text(b.Type)
			d.text(b.Text)
			d.text(string(b.Raw))
		}
	}
	return Digest(d.hash.Sum(nil))
}

// digester writes values so that no two sequences of them are the same bytes.
type digester struct{ hash hash.Hash }

func (d digester) number(n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	_, _ = d.hash.Write(b[:])
}

func (d digester) text(s string) {
	d.number(len(s))
	_, _ = io.WriteString(d.hash, s)
}
