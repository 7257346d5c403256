package connect

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The YAML files are changed by whole lines at places that the parser names, so that every
// other byte stays: an encoder would lay out anew what a person has written. Afterwards it
// is seen that the file says what it should; one that does not is not given out.

var errByHand = errors.New("it is written in a way that cannot be changed safely: put the settings in by hand")

// modelName is what Continue shows of OCP.
const modelName = "Claude by OCP"

func continueModel(s Settings) []pair {
	return []pair{{"name", modelName}, {"provider", "openai"}, {"model", s.Model}, {"apiBase", s.openai()}, {"apiKey", s.key()}}
}

type pair struct{ key, value string }

func showContinue(s Settings) string { return "models:\n" + item(continueModel(s), "  ") }

// item is a list's entry, its dash indented.
func item(pairs []pair, indent string) string {
	var b strings.Builder
	for i, p := range pairs {
		mark := "  "
		if i == 0 {
			mark = "- "
		}
		fmt.Fprintf(&b, "%s%s%s: %s\n", indent, mark, p.key, scalar(p.value))
	}
	fmt.Fprintf(&b, "%s  roles: [chat, edit]\n", indent)
	return b.String()
}

// scalar is a text as YAML: plain where it can be.
func scalar(text string) string {
	out, err := yaml.Marshal(text)
	if err != nil || strings.Count(string(out), "\n") > 1 {
		return fmt.Sprintf("%q", text)
	}
	return strings.TrimSuffix(string(out), "\n")
}

const continueHead = "name: Local Config\nversion: 1.0.0\nschema: v1\n"

// editContinue puts the model at the end of the list, or in the place of the one of its
// name.
func editContinue(old []byte, s Settings) ([]byte, error) {
	if len(strings.TrimSpace(string(old))) == 0 {
		return []byte(continueHead + showContinue(s)), nil
	}
	root, err := mapping(old)
	if err != nil {
		return nil, err
	}
	want := map[string]any{}
	if err := yaml.Unmarshal(old, &want); err != nil {
		return nil, err
	}
	var ours []any
	if err := yaml.Unmarshal([]byte(item(continueModel(s), "")), &ours); err != nil {
		return nil, err
	}
	lines := splitLines(old)
	at, list := find(root, "models")
	var change []string
	switch {
	case list == nil:
		lines = append(lines, splitLines([]byte(showContinue(s)))...)
		want["models"] = ours
		return proven(lines, want)
	case list.Kind == yaml.ScalarNode && list.Tag == "!!null", list.Kind == yaml.SequenceNode && len(list.Content) == 0:
		key := root.Content[at].Line
		change = append([]string{"models:\n"}, splitLines([]byte(item(continueModel(s), "  ")))...)
		lines = slices.Replace(lines, key-1, max(list.Line, key), change...)
		want["models"] = ours
		return proven(lines, want)
	case list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0:
		return nil, errByHand
	}
	end := len(lines) // the index of the first line after the list
	if at+2 < len(root.Content) {
		end = root.Content[at+2].Line - 1
	}
	first := list.Content[0].Line - 1
	dash := lines[first][:len(lines[first])-len(strings.TrimLeft(lines[first], " "))]
	from, to := lastOf(lines, end, dash), lastOf(lines, end, dash)
	present := want["models"].([]any)
	i := slices.IndexFunc(list.Content, func(n *yaml.Node) bool {
		_, name := find(n, "name")
		return name != nil && name.Value == modelName
	})
	if i >= 0 {
		if reflect.DeepEqual(present[i], ours[0]) {
			return old, nil
		}
		from = list.Content[i].Line - 1
		if i+1 < len(list.Content) {
			to = lastOf(lines, list.Content[i+1].Line-1, dash)
		}
		present[i] = ours[0]
	} else {
		want["models"] = append(present, ours[0])
	}
	return proven(slices.Replace(lines, from, to, splitLines([]byte(item(continueModel(s), dash)))...), want)
}

// lastOf is the index after the last line before end that belongs to a list with such
// dashes: empty lines, and comments not deeper than the dash, do not.
func lastOf(lines []string, end int, dash string) int {
	for end > 0 {
		text := strings.TrimLeft(lines[end-1], " ")
		depth := len(lines[end-1]) - len(text)
		text = strings.TrimRight(text, " \t\r\n")
		if text != "" && text != "..." && !(strings.HasPrefix(text, "#") && depth <= len(dash)) {
			break
		}
		end--
	}
	return end
}

func aiderPairs(s Settings) []pair {
	return []pair{{"openai-api-base", s.openai()}, {"openai-api-key", s.key()}, {"model", "openai/" + s.Model}}
}

func showAider(s Settings) string {
	text := ""
	for _, p := range aiderPairs(s) {
		text += p.key + ": " + scalar(p.value) + "\n"
	}
	return text
}

// editAider sets three keys. A key that is there stays if none is given.
func editAider(old []byte, s Settings) ([]byte, error) {
	if len(strings.TrimSpace(string(old))) == 0 {
		return []byte(showAider(s)), nil
	}
	root, err := mapping(old)
	if err != nil {
		return nil, err
	}
	want := map[string]any{}
	if err := yaml.Unmarshal(old, &want); err != nil {
		return nil, err
	}
	lines := splitLines(old)
	for _, p := range aiderPairs(s) {
		at, value := find(root, p.key)
		switch {
		case value == nil:
			lines = append(lines, p.key+": "+scalar(p.value)+"\n")
		case p.key == "openai-api-key" && s.Key == "", value.Value == p.value:
			continue
		case value.Kind != yaml.ScalarNode || value.Line != root.Content[at].Line:
			return nil, errByHand
		default:
			comment := ""
			if value.LineComment != "" {
				comment = " " + value.LineComment
			}
			lines[value.Line-1] = p.key + ": " + scalar(p.value) + comment + "\n"
		}
		want[p.key] = p.value
	}
	return proven(lines, want)
}

// mapping is the root of a document that is a mapping. One of comments alone is empty.
func mapping(text []byte) (*yaml.Node, error) {
	// Where YAML has a line end and other programs none, places would not be what they say.
	if strings.ContainsAny(strings.ReplaceAll(string(text), "\r\n", ""), "\r\u0085\u2028\u2029") {
		return nil, errByHand
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	if document.Kind == 0 {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 {
		return nil, errByHand
	}
	return root, nil
}

// find returns the place of a key in a mapping, and its value; nil if there is none.
func find(mapping *yaml.Node, key string) (int, *yaml.Node) {
	for i := 0; mapping.Kind == yaml.MappingNode && i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i, mapping.Content[i+1]
		}
	}
	return 0, nil
}

// splitLines splits a text into lines, each with its newline.
func splitLines(text []byte) []string {
	lines := slices.Collect(strings.Lines(string(text)))
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		lines[n-1] += "\n"
	}
	return lines
}

// proven joins the lines if they say what they should.
func proven(lines []string, want map[string]any) ([]byte, error) {
	text := strings.Join(lines, "")
	var got map[string]any
	if err := yaml.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
		return nil, errByHand
	}
	return []byte(text), nil
}
