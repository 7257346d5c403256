package claude

import (
	"context"
	"regexp"
	"strings"
	"time"
)

const (
	// planEvery and planBound are how often, and for how long, the screen of a check's
	// session is looked at for the plan. Both pinned CLIs draw it 0.1 to 0.15 s after
	// SessionStart on a quiet machine.
	planEvery = 20 * time.Millisecond
	planBound = 2 * time.Second
	// planless is how many looks find the input box, which is drawn with the start screen
	// or after it, until no plan is expected any more.
	planless = 5
)

// planNames are the words that may be shown as the plan. The start screen can also name
// the account's owner and organisation, which are nobody else's business.
var planNames = regexp.MustCompile(`^(API Usage Billing|Claude (API|Free|Pro|Max|Team|Enterprise))\b`)

// planOn finds the plan on a start screen: it stands behind the model and a dot, and
// above any text of the conversation.
func planOn(screen string) string {
	for line := range strings.Lines(screen) {
		if strings.HasPrefix(line, cursor) {
			return ""
		}
		for _, part := range strings.Split(line, " · ")[1:] {
			if name := planNames.FindString(part); name != "" {
				return name
			}
		}
	}
	return ""
}

// plan waits for a started session to draw its start screen, and returns the plan that
// it names; empty if it does not.
func (s *Session) plan(ctx context.Context) string {
	bound := time.NewTimer(planBound)
	defer bound.Stop()
	look := time.NewTicker(planEvery)
	defer look.Stop()
	for boxes := 0; boxes < planless; {
		screen := s.Screen()
		if plan := planOn(screen); plan != "" {
			return plan
		}
		if boxOn(screen) {
			boxes++
		}
		select {
		case <-look.C:
		case <-bound.C:
			return ""
		case <-s.done:
			return ""
		case <-ctx.Done():
			return ""
		}
	}
	return ""
}
