package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// opencodeProgram is opencode's own binary, which npm has only for this platform here.
const opencodeProgram = "clients/node_modules/opencode-linux-x64-baseline/bin/opencode"

// checkOpencode has the coding agent opencode write a file, headless: the model calls its
// tool. It must ask nothing of the internet.
func checkOpencode(t *testing.T, p *proxy, file string) {
	program, err := filepath.Abs(opencodeProgram)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		if runtime.GOOS+"/"+runtime.GOARCH == "linux/amd64" {
			t.Fatal(err)
		}
		t.Skip("opencode is installed on linux/amd64 alone")
	}
	trap := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// It asks npm for its plugins' types, whatever it is told, and does without.
		if r.URL.Path != "/@opencode-ai/plugin" {
			t.Errorf("opencode asked for %s %s", r.Method, r.URL)
		}
		http.NotFound(w, r)
	}))
	defer trap.Close()
	config := fmt.Sprintf(`{
		"model": "ocp/sonnet", "autoupdate": false, "share": "disabled",
		"provider": {"ocp": {
			"npm": "@ai-sdk/openai-compatible", "name": "OCP",
			"options": {"baseURL": %q, "apiKey": "unused"},
			"models": {"sonnet": {"name": "Sonnet"}}
		}}
	}`, p.url+"/v1")
	const prompt = "[opencode/run] go"
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "run", "--format", "json", "--title", "a title", prompt)
	cmd.Dir = filepath.Dir(file)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "OPENCODE_CONFIG_CONTENT=" + config,
		"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_SHARE=1",
		"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
		"HTTP_PROXY=" + trap.URL, "HTTPS_PROXY=" + trap.URL, "NO_PROXY=127.0.0.1", "npm_config_registry=" + trap.URL,
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("opencode: %v\n%s%s", err, out, stderr.Bytes())
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != stepFile {
		t.Errorf("the file holds %q, %v", got, err)
	}
	var text strings.Builder
	var reasons []string
	for line := range strings.Lines(string(out)) {
		var event struct {
			Type string
			Part struct {
				Text, Reason string
				Tokens       struct{ Input, Output int }
			}
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		text.WriteString(event.Part.Text)
		if part := event.Part; event.Type == "step_finish" {
			reasons = append(reasons, part.Reason)
			if part.Tokens.Input != 21 || part.Tokens.Output != 8 {
				t.Errorf("it ended with %s", line)
			}
		}
	}
	if !slices.Equal(reasons, []string{"tool-calls", "stop"}) {
		t.Errorf("its steps ended with %q", reasons)
	}
	// It takes white space off the end, of which there is none.
	if want := "One moment." + stepText(prompt); text.String() != want {
		t.Errorf("%s\n%s%s", difference(text.String(), want), out, stderr.Bytes())
	}
	for _, r := range p.model.Turns() {
		if strings.Contains(string(r.Body), prompt) {
			if request, err := r.Decode(); err != nil || len(request.Tools) == 0 || !strings.Contains(string(r.Body), "opencode") {
				t.Errorf("the model was asked with %d tools (%v): %s", len(request.Tools), err, clip(string(r.Body)))
			}
		}
	}
}
