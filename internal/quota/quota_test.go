package quota

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// midnight ends the day of noon.
var midnight = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// begin has a request begin that must be let through.
func begin(t *testing.T, a *Account, l Limits, now time.Time) (*Use, Standing) {
	t.Helper()
	use, standing, err := a.Begin(l, now)
	if err != nil {
		t.Fatalf("at %v: %v", now, err)
	}
	return use, standing
}

// wantRefused has a request begin that must be refused, and counts for nothing.
func wantRefused(t *testing.T, a *Account, l Limits, now, reset time.Time, says string) {
	t.Helper()
	use, _, err := a.Begin(l, now)
	refused, ok := errors.AsType[*Refused](err)
	if !ok || use != nil {
		t.Fatalf("at %v got %v, %v", now, use, err)
	}
	if !refused.Reset.Equal(reset) || !strings.Contains(refused.Error(), says) {
		t.Errorf("got %q until %v, want %q until %v", refused, refused.Reset, says, reset)
	}
	if !reset.IsZero() && (refused.RetryAfter != reset.Sub(now) || !strings.Contains(refused.Error(), reset.Format(time.RFC3339))) {
		t.Errorf("got %v and %q", refused.RetryAfter, refused)
	}
	if refused.RetryAfter <= 0 {
		t.Errorf("the client is to wait %v", refused.RetryAfter)
	}
}

func TestConcurrency(t *testing.T) {
	var a Account
	l := Limits{Concurrency: 2}
	one, _ := begin(t, &a, l, noon)
	two, standing := begin(t, &a, l, noon)
	if standing != (Standing{}) {
		t.Errorf("the standing is %+v", standing)
	}
	wantRefused(t, &a, l, noon, time.Time{}, "2 requests under way")
	one.Done()
	one.Done() // once is enough
	three, _ := begin(t, &a, l, noon)
	wantRefused(t, &a, l, noon, time.Time{}, "2 requests under way")
	two.Done()
	three.Done()
	var none *Use
	none.Spend(1)
	none.Done()
}

func TestPerMinute(t *testing.T) {
	var a Account
	l := Limits{PerMinute: 2}
	begin(t, &a, l, noon)
	_, standing := begin(t, &a, l, noon.Add(10*time.Second+time.Millisecond))
	full := noon.Add(70*time.Second + time.Millisecond)
	if diff := cmp.Diff(Standing{Requests: Gauge{2, 0, full}}, standing); diff != "" {
		t.Error(diff)
	}
	wantRefused(t, &a, l, noon.Add(59*time.Second), noon.Add(time.Minute), "2 requests a minute")
	begin(t, &a, l, noon.Add(time.Minute))
	wantRefused(t, &a, l, noon.Add(61*time.Second), noon.Add(71*time.Second), "2 requests a minute") // up from 70.001 s
	// Of a lower limit, as many as it lets through must be gone by.
	wantRefused(t, &a, Limits{PerMinute: 1}, noon.Add(61*time.Second), noon.Add(2*time.Minute), "1 request a minute")
}

func TestPerDay(t *testing.T) {
	var a Account
	l := Limits{PerDay: 2, PerMinute: 5}
	a.Resume(noon, 1, 0)
	_, standing := begin(t, &a, l, noon)
	if diff := cmp.Diff(Standing{Requests: Gauge{2, 0, midnight}}, standing); diff != "" {
		t.Error(diff)
	}
	wantRefused(t, &a, l, noon, midnight, "2 requests a day")
	wantRefused(t, &a, l, midnight.Add(-time.Millisecond), midnight, "2 requests a day")
	begin(t, &a, l, midnight)
}

func TestTokensPerDay(t *testing.T) {
	var a Account
	l := Limits{TokensPerDay: 100}
	a.Resume(noon, 3, 40)
	use, standing := begin(t, &a, l, noon)
	if diff := cmp.Diff(Standing{Tokens: Gauge{100, 60, midnight}}, standing); diff != "" {
		t.Error(diff)
	}
	late, _ := begin(t, &a, l, noon)
	use.Spend(60)
	wantRefused(t, &a, l, noon, midnight, "100 tokens a day (UTC) and has used 100")
	if _, standing, _ := a.Begin(l, noon); standing.Tokens.Remaining != 0 {
		t.Errorf("got %+v", standing)
	}
	// A turn counts on the day on which it began.
	next, _ := begin(t, &a, l, midnight)
	late.Spend(1000)
	next.Spend(1)
	if _, standing = begin(t, &a, l, midnight); standing.Tokens.Remaining != 99 {
		t.Errorf("got %+v", standing)
	}
}

// TestLongestFirst checks that a client which waits as it is told does not run into the next
// limit.
func TestLongestFirst(t *testing.T) {
	var a Account
	l := Limits{Concurrency: 1, PerMinute: 1, PerDay: 1}
	begin(t, &a, l, noon)
	wantRefused(t, &a, l, noon, midnight, "a day")
	wantRefused(t, &a, Limits{Concurrency: 1, PerMinute: 1}, noon, noon.Add(time.Minute), "a minute")
}

func TestBookKeepsAccounts(t *testing.T) {
	var b Book
	if a := b.Account("a"); b.Account("a") != a || b.Account("b") == a {
		t.Error("the accounts are mixed")
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		limits Limits
		says   []string
	}{
		{Limits{}, nil},
		{Limits{Models: []string{"opus", "sonnet[1m]"}, Concurrency: 1, PerMinute: maxPerMinute, PerDay: 1, TokensPerDay: 1 << 60}, nil},
		{Limits{Models: []string{" "}}, []string{"--models"}},
		{Limits{Models: []string{"a\n"}}, []string{"--models"}},
		{Limits{PerMinute: maxPerMinute + 1}, []string{"--per-minute"}},
		{Limits{Concurrency: -1, PerMinute: -1, PerDay: -1, TokensPerDay: -1}, []string{"--concurrency", "--per-minute", "--per-day", "--tokens-per-day"}},
	} {
		err := test.limits.Validate()
		if (err == nil) != (test.says == nil) {
			t.Errorf("%+v: %v", test.limits, err)
		}
		for _, flag := range test.says {
			if !strings.Contains(err.Error(), flag) {
				t.Errorf("%+v: %v does not name %s", test.limits, err, flag)
			}
		}
	}
}

// TestLimitsHold has any requests come at any time: no limit is ever exceeded, and a client
// that waits until the reset is let through.
func TestLimitsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{
			Concurrency: rapid.IntRange(0, 3).Draw(t, "concurrency"), PerMinute: rapid.IntRange(0, 4).Draw(t, "per minute"),
			PerDay: rapid.IntRange(0, 20).Draw(t, "per day"),
		}
		var a Account
		var running []*Use
		var begun []time.Time
		now := noon
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(40*time.Second)).Draw(t, "later")))
			if rapid.IntRange(0, 300).Draw(t, "a day") == 0 {
				now = now.Add(24 * time.Hour)
			}
			if len(running) > 0 && rapid.Bool().Draw(t, "ends") {
				running[0].Done()
				running = running[1:]
				continue
			}
			use, _, err := a.Begin(l, now)
			if refused, ok := errors.AsType[*Refused](err); ok {
				if refused.Reset.IsZero() {
					if len(running) < l.Concurrency {
						t.Fatalf("%v with %d running", err, len(running))
					}
					continue
				}
				now = refused.Reset
				if use, _, err = a.Begin(l, now); err != nil {
					if again, _ := errors.AsType[*Refused](err); !again.Reset.IsZero() {
						t.Fatalf("at the reset: %v", err)
					}
					continue
				}
			}
			running, begun = append(running, use), append(begun, now)
			minute, day := 0, 0
			for _, at := range begun {
				if now.Sub(at) < time.Minute {
					minute++
				}
				if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
					day++
				}
			}
			if l.Concurrency > 0 && len(running) > l.Concurrency || l.PerMinute > 0 && minute > l.PerMinute || l.PerDay > 0 && day > l.PerDay {
				t.Fatalf("%+v: %d at once, %d in a minute, %d in a day", l, len(running), minute, day)
			}
		}
	})
}
