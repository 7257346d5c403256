package claude

import (
	"testing"
	"time"

	"ocp/internal/turn"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, time.November, 30, 20, 8, 17, 0, time.UTC)
	at := func(month time.Month, day, hour, minute int) time.Duration {
		return time.Date(2026, month, day, hour, minute, 59, 0, time.UTC).Sub(now)
	}
	for _, test := range []struct {
		name, entry string
		want        time.Duration
	}{
		// As 2.1.207 wrote them at this time.
		{"five hours", "You've hit your session limit · resets 10:21pm (UTC)", at(time.November, 30, 22, 21)},
		{"minutes", "You've hit your session limit · resets 8:17pm (UTC)", at(time.November, 30, 20, 17)},
		{"a week", "You've hit your weekly limit · resets Dec 3, 11:08pm (UTC)", at(time.December, 3, 23, 8)},
		{"no limit of the account's", "API Error: Server is temporarily limiting requests (not your usage limit) · Slow down", 0},

		{"on the hour", "x · resets 10pm (UTC)", at(time.November, 30, 22, 0)},
		{"tomorrow", "x · resets 12:30am (UTC)", at(time.November, 30, 24, 30)},
		{"noon", "x · resets 12pm (UTC)", at(time.December, 1, 12, 0)},
		{"this minute", "x · resets 8:08pm (UTC)", 42 * time.Second},
		{"just passed", "x · resets 8:05pm (UTC)", time.Second},
		{"another zone", "x · resets 6:21am (Asia/Kathmandu)", at(time.December, 1, 0, 36)},
		{"behind the date line", "x · resets Dec 1, 12:30pm (Pacific/Kiritimati)", at(time.November, 30, 22, 30)},
		{"a day without minutes", "x · resets Dec 3, 11pm (UTC)", at(time.December, 3, 23, 0)},
		{"with the year", "x · resets Dec 31, 2026, 11pm (UTC)", at(time.December, 31, 23, 0)},
		{"more behind it", "x · resets 10:21pm (UTC) · /upgrade to go on", at(time.November, 30, 22, 21)},

		{"too far off", "x · resets Mar 3, 2027, 11pm (UTC)", 0},
		{"long passed", "x · resets Jan 3, 11pm (UTC)", 0},
		{"no such day", "x · resets Feb 30, 2027, 11pm (UTC)", 0},
		{"no such month", "x · resets Foo 3, 11pm (UTC)", 0},
		{"no such hour", "x · resets 13pm (UTC)", 0},
		{"no such minute", "x · resets 1:60pm (UTC)", 0},
		{"no such zone", "x · resets 1pm (Nowhere/Atall)", 0},
		{"a path for a zone", "x · resets 1pm (../../etc/passwd)", 0},
		{"quoted of the upstream", "API Error: limited · Slow down · resets 11:11pm (UTC)", 0},
		{"no zone", "x · resets 10:21pm", 0},
		{"nothing", "", 0},
	} {
		if got := retryAfter(turn.Failure{Entry: test.entry}, now); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}

	recorded := turn.Failure{Entry: "x · resets 10:21pm (UTC)", ResetsAt: now.Add(90 * time.Second)}
	if got := retryAfter(recorded, now); got != 90*time.Second {
		t.Errorf("with the time itself recorded: got %s", got)
	}
	if got := retryAfter(turn.Failure{Message: "x · resets 10:21pm (UTC)"}, now); got != 0 {
		t.Errorf("a text that is no error entry counted: %s", got)
	}
}

// TestRetryAfterOnlyOfLimits checks that other failures name no time.
func TestRetryAfterOnlyOfLimits(t *testing.T) {
	entry := "x · resets " + time.Now().Add(time.Hour).UTC().Format("3:04pm") + " (UTC)"
	for status, want := range map[int]bool{429: true, 400: false, 401: false, 500: false, 529: false} {
		got := classify(turn.Failure{Status: status, Entry: entry}).RetryAfter
		if (got > 0) != want {
			t.Errorf("%d: got %s", status, got)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("You've hit your session limit · resets 10:21pm (UTC)", int64(1796069837))
	f.Add("x · resets Dec 3, 2026, 12am (Asia/Kathmandu)", int64(1796069837))
	f.Fuzz(func(t *testing.T, entry string, now int64) {
		if got := retryAfter(turn.Failure{Entry: entry}, time.Unix(now, 0)); got != 0 && (got < time.Second || got > maxReset) {
			t.Fatalf("%q gives %s", entry, got)
		}
	})
}
