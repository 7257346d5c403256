// Package quota counts what clients use and says whether one more request is within their
// limits. It is pure: its callers say what time it is, and keep what must last.
package quota

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Limits are what one key may use. Zero values are no limit. A day is one of UTC.
type Limits struct {
	Models       []string `json:"models,omitempty"`         // that may be asked for, by the exact names
	Concurrency  int      `json:"concurrency,omitempty"`    // requests under way at once, those that wait included
	PerMinute    int      `json:"per_minute,omitempty"`     // requests in any 60 seconds
	PerDay       int      `json:"per_day,omitempty"`        // requests in a day
	TokensPerDay int64    `json:"tokens_per_day,omitempty"` // input, cached or not, and output of a day's turns
}

// Allows reports whether the model may be asked for.
func (l Limits) Allows(model string) bool {
	return len(l.Models) == 0 || slices.Contains(l.Models, model)
}

// maxPerMinute bounds what is remembered of each key: the times of a minute's requests.
const maxPerMinute = 100_000

// Validate says what is wrong, naming the flags that set limits, all faults at once.
func (l Limits) Validate() error {
	var errs []error
	for _, name := range l.Models {
		if strings.TrimSpace(name) == "" || strings.ContainsFunc(name, unicode.IsControl) {
			errs = append(errs, fmt.Errorf("--models: %q is not the name of a model", name))
		}
	}
	for _, limit := range []struct {
		flag string
		n    int64
	}{
		{"--concurrency", int64(l.Concurrency)},
		{"--per-minute", int64(l.PerMinute)},
		{"--per-day", int64(l.PerDay)},
		{"--tokens-per-day", l.TokensPerDay},
	} {
		if limit.n < 0 {
			errs = append(errs, fmt.Errorf("%s: %d is less than zero, which is no limit", limit.flag, limit.n))
		}
	}
	if l.PerMinute > maxPerMinute {
		errs = append(errs, fmt.Errorf("--per-minute: %d is more than %d", l.PerMinute, maxPerMinute))
	}
	return errors.Join(errs...)
}

// Refused says which limit a request has met. Its text is for the client: it names
// neither the key nor anything of the request.
type Refused struct {
	Reset      time.Time     // when the limit lets requests through again; zero if nobody knows
	RetryAfter time.Duration // until Reset, or how long a client does well to wait
	text       string
}

func (r *Refused) Error() string { return r.text }

// Standing is how much of its limits a key has left, for the client to see.
type Standing struct {
	Requests Gauge // of the limit on requests that has the fewest left
	Tokens   Gauge // without those of turns that are not over
}

// Gauge is how much is left of one limit. All is zero if there is no such limit.
type Gauge struct {
	Limit, Remaining int64
	Reset            time.Time // when all of it is there again
}

// day is the number of a day of UTC.
type day int64

const secondsPerDay = 24 * 60 * 60

func dayOf(t time.Time) day { return day(t.Unix() / secondsPerDay) }

// end is the first moment of the next day.
func (d day) end() time.Time { return time.Unix(int64(d+1)*secondsPerDay, 0).UTC() }
