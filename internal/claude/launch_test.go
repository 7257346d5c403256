package claude

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"ocp/internal/claude/claudetest"
	"ocp/internal/turn"
)

// The test binary is also the stand-in CLI that the tests launch.
func TestMain(m *testing.M) {
	actAsEditor()
	claudetest.Main()
	goleak.VerifyTestMain(m)
}

func TestArguments(t *testing.T) {
	p := place{system: "/s/system", settings: "/s/settings.json"}
	args := arguments(Key{Model: "--help", Effort: "high"}, p, "some-id")
	if !slices.Contains(args, "--model=--help") || !slices.Contains(args, "--effort=high") {
		t.Errorf("model and effort are not single arguments: %q", args)
	}
	args = arguments(Key{}, p, "some-id")
	for _, a := range args {
		if strings.HasPrefix(a, "--model") || strings.HasPrefix(a, "--effort") {
			t.Errorf("%s was passed although neither was asked for", a)
		}
	}
}

func TestEnvironment(t *testing.T) {
	own := []string{
		"PATH=/bin", "ANTHROPIC_API_KEY=key", "ANTHROPIC_MODEL=other", "CLAUDECODE=1", "CLAUDE_CODE_MAX_RETRIES=9",
		"SECRET=x", "NAMED=named", "EMPTY=", "TZ=UTC", "TZ=CET", "HTTP_PROXY=http://proxy:1", "no_proxy=example.org",
	}
	got := environment(own, []string{"NAMED", "EMPTY", "ABSENT", "CLAUDE_CODE_MAX_RETRIES", "HOME"}, "HOME=/session")
	if v, _ := lookup(got, "CLAUDE_CODE_MAX_RETRIES"); v != "0" {
		t.Errorf("a named variable undoes what ocp sets: %q", v)
	}
	for _, want := range []string{
		"PATH=/bin", "ANTHROPIC_API_KEY=key", "NAMED=named", "TZ=CET", "HOME=/session", "HTTP_PROXY=http://proxy:1",
		"NO_PROXY=example.org,127.0.0.1,localhost", "no_proxy=example.org,127.0.0.1,localhost", "CLAUDE_CODE_MAX_RETRIES=0",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, v := range got {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "ANTHROPIC_MODEL", "CLAUDECODE", "SECRET", "EMPTY", "ABSENT":
			t.Errorf("%q reaches the session", v)
		}
	}
}

func TestSettings(t *testing.T) {
	command := []string{"/opt/it's here/ocp", "hook"}
	for _, transport := range []Transport{HTTP, Command} {
		data, err := settings(transport, "http://127.0.0.1:1/hook", command)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Hooks map[string][]struct{ Hooks []hookConfig }
		}
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Hooks) != 7 {
			t.Errorf("%s: %d events, want 7", transport, len(got.Hooks))
		}
		for event, groups := range got.Hooks {
			h := groups[0].Hooks[0]
			wantHTTP := transport == HTTP && event != "SessionStart"
			if (h.Type == "http") != wantHTTP {
				t.Errorf("%s: %s goes by %s", transport, event, h.Type)
			}
			if h.Type == "http" && (h.Headers["Ocp-Hook-Secret"] != "$OCP_HOOK_SECRET" || !slices.Equal(h.AllowedEnvVars, []string{SecretVar})) {
				t.Errorf("%s: the secret is not taken from the environment: %+v", event, h)
			}
		}
	}
}

func TestShellQuote(t *testing.T) {
	words := []string{"a b", "it's", `$HOME "x" \`, "", "é\n"}
	out, err := exec.Command("/bin/sh", "-c", "printf '%s|' "+shellQuote(words)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(words, "|") + "|"; string(out) != want {
		t.Errorf("the shell read %q, want %q", out, want)
	}
}

func TestSeed(t *testing.T) {
	var got map[string]any
	if err := json.Unmarshal(seed([]string{"ANTHROPIC_API_KEY=0123456789012345678901234"}, "/cwd"), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"hasCompletedOnboarding": true,
		"projects":               map[string]any{"/cwd": map[string]any{"hasTrustDialogAccepted": true}},
		"customApiKeyResponses":  map[string]any{"approved": []any{"56789012345678901234"}, "rejected": []any{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("seed (-want +got):\n%s", diff)
	}
	if s := seed([]string{"ANTHROPIC_API_KEY=short"}, "/cwd"); !strings.Contains(string(s), `"short"`) {
		t.Errorf("a short key is not approved: %s", s)
	}
	if s := seed(nil, "/cwd"); strings.Contains(string(s), "customApiKey") {
		t.Errorf("a key is approved though there is none: %s", s)
	}
}

func TestClassify(t *testing.T) {
	for _, test := range []struct {
		failure turn.Failure
		want    turn.Kind
	}{
		{turn.Failure{Error: "authentication_failed", Status: 401}, turn.Authentication},
		{turn.Failure{Error: "authentication_failed", Status: 403}, turn.Permission},
		{turn.Failure{Error: "authentication_failed"}, turn.Authentication},
		{turn.Failure{Error: "rate_limit", Status: 429}, turn.RateLimited},
		{turn.Failure{Error: "rate_limit"}, turn.RateLimited},
		{turn.Failure{Error: "server_error", Status: 500}, turn.Upstream},
		{turn.Failure{Error: "server_error", Status: 529}, turn.Overloaded},
		{turn.Failure{Error: "server_error"}, turn.Upstream},
		{turn.Failure{Error: "unknown", Status: 400, Message: "API Error: 400 bad"}, turn.InvalidRequest},
		{turn.Failure{Error: "invalid_request", Status: 400}, turn.ContextLength},
		{turn.Failure{Error: "invalid_request", Status: 413}, turn.TooLarge},
		{turn.Failure{Error: "invalid_request"}, turn.InvalidRequest},
		{turn.Failure{Error: "model_not_found", Status: 404}, turn.ModelNotFound},
		{turn.Failure{Error: "model_not_found"}, turn.ModelNotFound},
		{turn.Failure{Error: "a word of a later release"}, turn.Upstream},
		{turn.Failure{}, turn.Upstream},
	} {
		if got := classify(test.failure); got.Kind != test.want || got.Message == "" {
			t.Errorf("%+v: got %+v, want kind %s and a message", test.failure, got, test.want)
		}
	}
}
