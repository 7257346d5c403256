package claude

import "testing"

func TestPlanOnScreen(t *testing.T) {
	for _, test := range []struct{ name, screen, want string }{
		{"2.1.332", " ▐▛███▛█   Claude Code v2.1.332\n▝▜██████▀  Opus 5.5 with low effort · API Usage Billing\n ▝▝   ▝▝   /tmp/cwd\n❯ Ready?\n", "API Usage Billing"},
		{"2.1.207", "╭─── Claude Code v2.1.207 ───╮\n│  Sonnet 5 with low effort · Claude API    │ Tips │\n", "Claude API"},
		{"a subscription with its owner", "│ Opus 4.8 · Claude Max · ann@example.com's Organization │\n", "Claude Max"},
		{"the owner alone", "│ Opus 4.8 · ann@example.com's Organization │\n", ""},
		{"a conversation that names one", " Claude Code v2.1.332\n❯ a · Claude Max\n", ""},
		{"nothing yet", "", ""},
	} {
		if got := planOn(test.screen); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
