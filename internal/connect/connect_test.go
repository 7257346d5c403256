package connect

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

var plain = Settings{URL: "http://127.0.0.1:3456", Model: "sonnet"}

// TestDocs holds docs/clients.md and the program together: what is shown stands there, and
// who is said to be tried is.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Clients() {
		_, section, ok := strings.Cut(string(doc), "\n## "+c.Title+"\n")
		if !ok {
			t.Errorf("docs/clients.md has no section %s", c.Title)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		shown := ""
		for line := range strings.Lines(c.Show(plain)) {
			shown += "    " + line
		}
		if !strings.Contains(section, shown) {
			t.Errorf("docs/clients.md, %s, does not have:\n%s", c.Title, shown)
		}
		if tried := strings.HasPrefix(strings.TrimSpace(section), "Tried"); tried != c.Tried {
			t.Errorf("docs/clients.md says of %s that tried is %v", c.Title, tried)
		}
	}
}

func TestNormalize(t *testing.T) {
	for url, want := range map[string]string{
		"http://127.0.0.1:3456":      "http://127.0.0.1:3456",
		"http://127.0.0.1:3456/":     "http://127.0.0.1:3456",
		"http://127.0.0.1:3456/v1":   "http://127.0.0.1:3456",
		"https://ocp.example/x/v1//": "https://ocp.example/x",
		"https://ocp.example/x/v1/":  "https://ocp.example/x",
		"127.0.0.1:3456":             "",
		"ftp://host":                 "",
		"http://":                    "",
		"http://u:p@host":            "",
		"http://host/?a=b":           "",
	} {
		s := plain
		s.URL = url
		got, err := s.Normalize()
		if (err != nil) != (want == "") || err == nil && got.URL != want {
			t.Errorf("%s: %q, %v", url, got.URL, err)
		}
	}
	for _, s := range []Settings{
		{URL: plain.URL}, {URL: plain.URL, Model: "a\nb"}, {URL: plain.URL, Model: "a", Key: "two,keys"}, {URL: plain.URL, Model: "a", Key: "a b"},
	} {
		if _, err := s.Normalize(); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}

const ocpProvider = `"ocp": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "OCP",
      "options": {
        "baseURL": "http://127.0.0.1:3456/v1",
        "apiKey": "unused"
      },
      "models": {
        "sonnet": {
          "name": "Sonnet"
        }
      }
    }`

func TestEdits(t *testing.T) {
	const models = `  - name: Claude by OCP
    provider: openai
    model: sonnet
    apiBase: http://127.0.0.1:3456/v1
    apiKey: unused
    roles: [chat, edit]
`
	for _, test := range []struct {
		name, client string
		old, want    string // want is empty for a refusal
	}{
		{"no file", "opencode", "", showOpencode(plain)},
		{"empty object", "opencode", "{}", "{\n  \"model\": \"ocp/sonnet\",\n  \"provider\": {\n    " + ocpProvider + "\n  }\n}"},
		{
			"comments and all", "opencode",
			"// mine\n{\n  // why\n  \"theme\": \"x\", /* so */\n  \"model\": \"a/b\" // last\n  // end\n}\n",
			"// mine\n{\n  // why\n  \"theme\": \"x\", /* so */\n  \"model\": \"a/b\", // last\n  // end\n  \"provider\": {\n    " + ocpProvider + "\n  }\n}\n",
		},
		{
			"another provider", "opencode",
			"{\n  \"model\": \"a/b\",\n  \"provider\": {\n    \"a\": {}, // theirs\n  },\n}\n",
			"{\n  \"model\": \"a/b\",\n  \"provider\": {\n    \"a\": {}, // theirs\n    " + ocpProvider + "\n  },\n}\n",
		},
		{
			"ours, of another address", "opencode",
			"{\"model\": \"a/b\", \"provider\": {\n    \"ocp\": {\"npm\": \"old\"}, // c\n    \"z\": 1\n}}",
			"{\"model\": \"a/b\", \"provider\": {\n    " + ocpProvider + ", // c\n    \"z\": 1\n}}",
		},
		{"tabs", "opencode", "{\n\t\"model\": \"m\"\n}", "{\n\t\"model\": \"m\",\n\t\"provider\": {\n\t\t" + strings.NewReplacer("          ", "\t\t\t\t\t", "        ", "\t\t\t\t", "      ", "\t\t\t", "    ", "\t\t").Replace(ocpProvider) + "\n\t}\n}"},
		{"no object", "opencode", "[]", ""},
		{"provider of another kind", "opencode", `{"provider": []}`, ""},
		{"no JSON", "opencode", "{", ""},

		{"no file", "continue", "", continueHead + showContinue(plain)},
		{
			"others", "continue",
			"name: mine\n# models\nmodels: # all\n  - name: A\n    prompt: |\n      # text\n\n      more\n\n# rules\nrules:\n  - b\n",
			"name: mine\n# models\nmodels: # all\n  - name: A\n    prompt: |\n      # text\n\n      more\n" + models + "\n# rules\nrules:\n  - b\n",
		},
		{"the last key, no newline", "continue", "models:\n- name: A", "models:\n- name: A\n" + strings.NewReplacer("\n  ", "\n", "  - ", "- ").Replace(models)},
		{
			"ours, of another address", "continue",
			"models:\n  # first\n  - name: Claude by OCP\n    model: x\n  # second\n  - name: A\n",
			"models:\n  # first\n" + models + "  # second\n  - name: A\n",
		},
		{"no models", "continue", "name: mine\n", "name: mine\nmodels:\n" + models},
		{"none yet", "continue", "models: []\nname: mine\n", "models:\n" + models + "name: mine\n"},
		{"nothing yet", "continue", "models:\nname: mine\n", "models:\n" + models + "name: mine\n"},
		{"comments alone", "continue", "# mine\n", "# mine\nmodels:\n" + models},
		{"a list in one line", "continue", "models: [{name: A}]\n", ""},
		{"no mapping", "continue", "- a\n", ""},
		{"no YAML", "continue", "a: [\n", ""},

		{"no file", "aider", "", showAider(plain)},
		{
			"others", "aider",
			"# mine\ndark-mode: true\nmodel: gpt # before\nopenai-api-key: theirs\nread:\n  - a\n",
			"# mine\ndark-mode: true\nmodel: openai/sonnet # before\nopenai-api-key: theirs\nread:\n  - a\nopenai-api-base: http://127.0.0.1:3456/v1\n",
		},
		{"a value below", "aider", "model: >-\n  gpt\n", ""},
	} {
		client, _ := Find(test.client)
		got, err := client.Edit([]byte(test.old), plain)
		if test.want == "" {
			if err == nil {
				t.Errorf("%s, %s: was changed to %s", test.client, test.name, got)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s, %s: %v", test.client, test.name, err)
			continue
		}
		if diff := cmp.Diff(test.want, string(got)); diff != "" {
			t.Errorf("%s, %s: %s", test.client, test.name, diff)
		}
		again, err := client.Edit(got, plain)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s, %s: again: %v: %s", test.client, test.name, err, cmp.Diff(string(got), string(again)))
		}
	}
}

// TestOddValues gives names that YAML and JSON have to quote.
func TestOddValues(t *testing.T) {
	for _, model := range []string{"a: b", "#x", "yes", `q"'`, "ä:", strings.Repeat("long ", 60) + "x", "{a}", "é"} {
		s := Settings{URL: "http://h", Model: model, Key: "k'\"#:"}
		for _, c := range Clients() {
			if c.Edit == nil {
				continue
			}
			text, err := c.Edit(nil, s)
			if err != nil {
				t.Fatal(err)
			}
			var got any
			if err := yaml.Unmarshal(text, &got); err != nil { // JSON is YAML
				t.Errorf("%s, %q: %v\n%s", c.Name, model, err, text)
				continue
			}
			all, _ := json.Marshal(got)
			for _, want := range []string{model, s.Key} {
				quoted, _ := json.Marshal(want)
				if !strings.Contains(string(all), strings.Trim(string(quoted), `"`)) {
					t.Errorf("%s does not hold %q:\n%s", c.Name, want, text)
				}
			}
		}
	}
}

// FuzzEdits checks that no file makes an edit fall over, and that a file that could be
// edited is as it should be ever after.
func FuzzEdits(f *testing.F) {
	f.Add("{\"a\": 1, // c\n}", uint8(0))
	f.Add("{\"provider\": {\"ocp\": 1}, \"provider\": {}}", uint8(0))
	f.Add("models:\n  - name: Claude by OCP\n    a: &x 1\n  - *x\n", uint8(1))
	f.Add("model: x\n---\nb: c\n", uint8(3))
	f.Fuzz(func(t *testing.T, old string, which uint8) {
		client := Clients()[int(which)%len(Clients())]
		if client.Edit == nil {
			return
		}
		got, err := client.Edit([]byte(old), plain)
		if err != nil {
			return
		}
		again, err := client.Edit(got, plain)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: %q became %q and then %q (%v)", client.Name, old, got, again, err)
		}
		if client.Name == "opencode" && strings.TrimSpace(old) != "" {
			before, after := decode(t, []byte(old)), decode(t, got)
			delete(before, "model")
			delete(after, "model")
			p, _ := before["provider"].(map[string]any)
			q, _ := after["provider"].(map[string]any)
			delete(p, "ocp")
			delete(q, "ocp")
			if len(p) == 0 && len(q) == 0 {
				delete(before, "provider")
				delete(after, "provider")
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("%q became %q: %s", old, got, diff)
			}
		}
	})
}

func decode(t *testing.T, text []byte) map[string]any {
	t.Helper()
	standard, err := hujson.Standardize(text)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(standard, &all); err != nil {
		t.Fatal(err)
	}
	return all
}
