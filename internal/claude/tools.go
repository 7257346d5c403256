package claude

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ocp/internal/prompt"
	"ocp/internal/transcript"
	"ocp/internal/turn"
)

// FirstWithTools is the first release on which a client's tools are known to reach the
// model. On 2.1.207 they do not: the conversation's turn is run without waiting for them.
const FirstWithTools = "2.1.332"

// OffersTools reports whether sessions of a release can offer the tools of a client.
func OffersTools(version string) bool {
	got, ok := numbers(version)
	first, _ := numbers(FirstWithTools)
	return ok && slices.Compare(got, first) >= 0
}

// Refuses is an error if a request is for what sessions cannot do.
func (l *Launcher) Refuses(req prompt.Request) error {
	if len(req.Tools) == 0 {
		return nil
	}
	switch version := l.options.Version; {
	case !OffersTools(version):
		return &turn.Error{Kind: turn.InvalidRequest, Message: "tools: Claude Code " + version +
			" starts the turn without a client's tools: leave the tools out, or have ocp use release " + FirstWithTools + " or a later one"}
	case len(l.options.MCPCommand) == 0:
		return &turn.Error{Kind: turn.InvalidRequest, Message: "tools: this ocp cannot offer any"}
	}
	return nil
}

// The server that offers the tools has the shortest of names, since the CLI puts it before
// the name of each tool.
const (
	toolServer  = "t"
	toolPrefix  = "mcp__" + toolServer + "__"
	maxToolName = 128 // of the upstream's, in bytes
)

// mcpConfig is the content of the one file of MCP servers that all sessions share.
func mcpConfig(command []string) ([]byte, error) {
	server := map[string]any{"type": "stdio", "command": command[0], "args": command[1:]}
	return json.Marshal(map[string]any{"mcpServers": map[string]any{toolServer: server}})
}

// naming is how a conversation's tools are called in its session: the model knows them by
// names that the CLI makes.
type naming struct {
	models  map[string]string // by the client's name
	clients map[string]string // by the model's name
}

func newNaming(tools []prompt.Tool) naming {
	n := naming{map[string]string{}, map[string]string{}}
	for _, tool := range tools {
		n.add(tool.Name)
	}
	return n
}

// add returns the model's name for a tool, which is one of its own.
func (n naming) add(client string) string {
	if name, ok := n.models[client]; ok {
		return name
	}
	most := maxToolName - len(toolPrefix)
	name := toolPrefix + plain(client, most)
	for i := 2; n.clients[name] != ""; i++ {
		suffix := "_" + strconv.Itoa(i)
		name = toolPrefix + plain(client, most-len(suffix)) + suffix
	}
	n.models[client], n.clients[name] = name, client
	return name
}

// plain is a name with nothing in it but what the upstream takes, cut to a length.
func plain(name string, most int) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), most)]
}

// client is the client's name for what the model has called. It may call what nobody has
// offered: that is then the client's to refuse.
func (n naming) client(model string) string {
	if name, ok := n.clients[model]; ok {
		return name
	}
	return strings.TrimPrefix(model, toolPrefix)
}

// rename gives the calls of a conversation's history the names that the model knows. If
// no tools are offered it knows none, and they keep theirs.
func (n naming) rename(c prompt.Conversation) prompt.Conversation {
	if len(c.Tools) == 0 {
		return c
	}
	c.Messages = slices.Clone(c.Messages)
	for i, m := range c.Messages {
		c.Messages[i].Content = slices.Clone(m.Content)
		for j, b := range m.Content {
			if b.Type == "tool_use" {
				c.Messages[i].Content[j].Raw = n.renameCall(b.Raw)
			}
		}
	}
	return c
}

func (n naming) renameCall(raw json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	var name string
	if json.Unmarshal(raw, &fields) != nil || json.Unmarshal(fields["name"], &name) != nil {
		return raw
	}
	fields["name"], _ = json.Marshal(n.add(name)) // strings always marshal
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(fields) != nil {
		return raw
	}
	return bytes.TrimSpace(b.Bytes())
}

// offer is the tools in the form in which `ocp mcp` takes them.
func (n naming) offer(tools []prompt.Tool) ([]byte, error) {
	type tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"inputSchema"`
	}
	list := make([]tool, len(tools))
	for i, t := range tools {
		list[i] = tool{strings.TrimPrefix(n.models[t.Name], toolPrefix), t.Description, t.Schema}
	}
	return json.Marshal(list)
}

// toolCheck compares the tools that the CLI records to have sent with those offered: the
// CLI may start the turn before it has them, and leaves out what it holds for invalid.
type toolCheck struct {
	naming naming
	tools  []prompt.Tool
	seen   bool // the first request was looked at
	diffs  int  // tools of which the model was told something else
}

// record looks at a record of the turn. An error, once, says that the model was asked
// without some of the tools.
func (c *toolCheck) record(r transcript.Record) *turn.Error {
	if c.seen || r.Tools == nil {
		return nil
	}
	c.seen = true
	sent := map[string]sentTool{}
	for _, raw := range r.Tools {
		var t sentTool
		if json.Unmarshal(raw, &t) == nil {
			sent[t.Name] = t
		}
	}
	if len(sent) == 0 {
		return errNotOffered
	}
	for _, tool := range c.tools {
		got, ok := sent[c.naming.models[tool.Name]]
		if !ok {
			return &turn.Error{Kind: turn.InvalidRequest, Message: fmt.Sprintf("the Claude Code CLI does not offer the tool %q: its input schema must be valid JSON Schema, draft 2020-12, of type object, and names of properties have 1 to 64 of a-z, A-Z, 0-9, _, . and -", tool.Name)}
		}
		if got.Description != tool.Description || !sameJSON(got.Schema, tool.Schema) {
			c.diffs++
		}
	}
	return nil
}

type sentTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
}

var errToolsUnseen = &turn.Error{Kind: turn.SessionFailed, Message: "the Claude Code session has not recorded which tools it has offered to the model"}

var errNotOffered = &turn.Error{Kind: turn.SessionFailed, Message: "the Claude Code session has started the turn without the client's tools: try again"}
