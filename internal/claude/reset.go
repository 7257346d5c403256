package claude

import (
	"regexp"
	"strconv"
	"time"

	"ocp/internal/turn"
)

// maxReset bounds how far off the end of a usage limit may be: the longest are monthly.
const maxReset = 32 * 24 * time.Hour

// retryAfter is how long the usage limit lasts that the CLI's own error entry tells of;
// zero if it tells no time.
func retryAfter(f turn.Failure, now time.Time) time.Duration {
	resets := f.ResetsAt
	if resets.IsZero() {
		resets = statedReset(f.Entry, now)
	}
	switch left := resets.Sub(now); {
	case resets.IsZero() || left < -maxReset || left > maxReset:
		return 0
	default:
		return max(left, time.Second)
	}
}

// reset is the end of a usage limit as the CLI words it, measured on 2.1.207 ("You've hit
// your session limit · resets 10:21pm (UTC)") and read from its code: with the day if it
// is more than 24 hours off, with the year if that is another, and without minutes on the
// hour. 2.1.332 records the time itself besides. What the upstream said, if quoted, stands
// behind another dot.
var reset = regexp.MustCompile(`^[^·]*· resets (?:([A-Z][a-z]{2}) (\d{1,2}),(?: (\d{4}),)? )?(\d{1,2})(?::(\d{2}))?([ap]m) \(([A-Za-z0-9_+/-]+)\)`)

// justPassed is how long ago a time of day without a day may be and still not mean that
// of tomorrow.
const justPassed = 5 * time.Minute

// statedReset finds the end of a usage limit in the text of an error entry; zero if there
// is none. It is the end of the minute named, since the CLI leaves the seconds out.
func statedReset(text string, now time.Time) time.Time {
	m := reset.FindStringSubmatch(text)
	if m == nil {
		return time.Time{}
	}
	zone, err := time.LoadLocation(m[7])
	if err != nil {
		return time.Time{}
	}
	clock, err := time.Parse("3:04pm", m[4]+":"+orZero(m[5])+m[6])
	if err != nil {
		return time.Time{}
	}
	year, month, day := now.In(zone).Date()
	if m[1] != "" {
		date, err := time.Parse("Jan 2 2006", m[1]+" "+m[2]+" "+orYear(m[3], year))
		if err != nil {
			return time.Time{}
		}
		year, month, day = date.Date()
	}
	at := func(day int) time.Time {
		return time.Date(year, month, day, clock.Hour(), clock.Minute(), 59, 0, zone)
	}
	if m[1] == "" && now.Sub(at(day)) > justPassed {
		return at(day + 1)
	}
	return at(day)
}

func orZero(minutes string) string {
	if minutes == "" {
		return "00"
	}
	return minutes
}

func orYear(stated string, now int) string {
	if stated == "" {
		return strconv.Itoa(now)
	}
	return stated
}
