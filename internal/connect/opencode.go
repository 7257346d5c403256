package connect

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// provider is what opencode calls OCP. The fields stand in the order that people write.
type provider struct {
	NPM     string `json:"npm"`
	Name    string `json:"name"`
	Options struct {
		BaseURL string `json:"baseURL"`
		APIKey  string `json:"apiKey"`
	} `json:"options"`
	Models map[string]struct {
		Name string `json:"name"`
	} `json:"models"`
}

func opencodeProvider(s Settings) provider {
	p := provider{NPM: "@ai-sdk/openai-compatible", Name: "OCP"}
	p.Options.BaseURL, p.Options.APIKey = s.openai(), s.key()
	p.Models = map[string]struct {
		Name string `json:"name"`
	}{s.Model: {Name: titled(s.Model)}}
	return p
}

func titled(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(first)) + name[size:]
}

func showOpencode(s Settings) string {
	var shown struct {
		Model    string              `json:"model"`
		Provider map[string]provider `json:"provider"`
	}
	shown.Model, shown.Provider = "ocp/"+s.Model, map[string]provider{"ocp": opencodeProvider(s)}
	return string(indented(shown, "", "  ")) + "\n"
}

// editOpencode sets provider.ocp, and the model if none is set. All else stays, comments
// included.
func editOpencode(old []byte, s Settings) ([]byte, error) {
	if len(strings.TrimSpace(string(old))) == 0 {
		return []byte(showOpencode(s)), nil
	}
	root, err := hujson.Parse(old)
	if err != nil {
		return nil, err
	}
	top, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("it is no JSON object")
	}
	indent := indentOf(top)
	if root.Find("/model") == nil {
		set(top, "model", "ocp/"+s.Model, "", indent)
	}
	providers := root.Find("/provider")
	if providers == nil {
		set(top, "provider", map[string]provider{"ocp": opencodeProvider(s)}, "", indent)
		return root.Pack(), nil
	}
	inner, ok := providers.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New(`its "provider" is no object`)
	}
	set(inner, "ocp", opencodeProvider(s), indent, indent)
	return root.Pack(), nil
}

// set puts a member into an object that is indented by outer: in its place if there is one
// of the name, or at the end. A value that says the same is left as it is written.
func set(object *hujson.Object, name string, value any, outer, step string) {
	inner := outer + step
	parsed, err := hujson.Parse(indented(value, inner, step))
	if err != nil {
		panic(err) // encoding/json has just written it
	}
	for i, m := range object.Members {
		if m.Name.Value.(hujson.Literal).String() != name {
			continue
		}
		if !same(m.Value, parsed) {
			object.Members[i].Value.Value = parsed.Value
		}
		return
	}
	// What stands before the closing brace, such as a comment, stays behind what it follows.
	before := strings.TrimRight(string(object.AfterExtra), " \t\r\n")
	object.Members = append(object.Members, hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: hujson.Extra(before + "\n" + inner), Value: hujson.String(name)},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: parsed.Value},
	})
	object.AfterExtra = hujson.Extra("\n" + outer)
}

// indentOf is the step by which an object's members are indented.
func indentOf(object *hujson.Object) string {
	for _, m := range object.Members {
		extra := string(m.Name.BeforeExtra)
		if at := strings.LastIndexByte(extra, '\n'); at >= 0 && strings.Trim(extra[at+1:], " \t") == "" && at+1 < len(extra) {
			return extra[at+1:]
		}
	}
	return "  "
}

func same(a, b hujson.Value) bool {
	decode := func(v hujson.Value) string {
		v = v.Clone()
		v.Standardize()
		var any any
		if json.Unmarshal(v.Pack(), &any) != nil {
			return ""
		}
		plain, _ := json.Marshal(any) // what was decoded can be encoded
		return string(plain)
	}
	return decode(a) == decode(b)
}

func indented(value any, prefix, step string) []byte {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(prefix, step)
	if err := encoder.Encode(value); err != nil {
		panic(err) // the types above can all be encoded
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}
