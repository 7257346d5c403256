package quota

import (
	"fmt"
	"strconv"
	"sync"
	"time"
)

// Book has the accounts of all clients, by the names of their keys.
type Book struct {
	mu       sync.Mutex
	accounts map[string]*Account // guarded by mu
}

// Account returns the account of a name. There is one for each name that was asked for, as
// long as the Book lives: a key that goes and comes back is where it was.
func (b *Book) Account(name string) *Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.accounts == nil {
		b.accounts = map[string]*Account{}
	}
	a := b.accounts[name]
	if a == nil {
		a = &Account{}
		b.accounts[name] = a
	}
	return a
}

// Account is what has been used under one name.
type Account struct {
	mu      sync.Mutex
	running int         // requests under way; guarded by mu, as all below
	minute  []time.Time // when those of the last minute began, if there is a limit on them; oldest first

	day      day // that the figures below are of
	requests int
	tokens   int64
}

// Resume has the account go on where it was on the day of now.
func (a *Account) Resume(now time.Time, requests int, tokens int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.day, a.requests, a.tokens = dayOf(now), requests, tokens
}

// window is what PerMinute is about. It slides: with a window that begins anew each
// minute, or with a bucket of tokens, twice the limit would fit into some minutes.
const window = time.Minute

// concurrencyRetry is how long a client does well to wait for one of its own requests to end.
const concurrencyRetry = time.Second

// Begin counts a request, or refuses it with a *Refused, which counts nothing. The Use
// must be Done.
func (a *Account) Begin(l Limits, now time.Time) (*Use, Standing, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.advance(now)
	if refused := a.refuse(l, now); refused != nil {
		return nil, a.standing(l, now), refused
	}
	a.running++
	a.requests++
	if l.PerMinute > 0 {
		a.minute = append(a.minute, now)
	}
	return &Use{account: a, day: a.day}, a.standing(l, now), nil
}

// advance forgets what is over. mu is held, as below.
func (a *Account) advance(now time.Time) {
	if today := dayOf(now); a.day != today {
		a.day, a.requests, a.tokens = today, 0, 0
	}
	gone := 0
	for gone < len(a.minute) && now.Sub(a.minute[gone]) >= window {
		gone++
	}
	a.minute = append(a.minute[:0], a.minute[gone:]...)
}

// refuse looks at the limits that last longest first, so that a client is not sent to the
// next one by waiting.
func (a *Account) refuse(l Limits, now time.Time) *Refused {
	switch {
	case l.TokensPerDay > 0 && a.tokens >= l.TokensPerDay:
		return until(a.day.end(), now, fmt.Sprintf("this key may use %d tokens a day (UTC) and has used %d", l.TokensPerDay, a.tokens))
	case l.PerDay > 0 && a.requests >= l.PerDay:
		return until(a.day.end(), now, "this key may send "+requests(l.PerDay)+" a day (UTC)")
	case l.PerMinute > 0 && len(a.minute) >= l.PerMinute:
		free := a.minute[len(a.minute)-l.PerMinute].Add(window)
		return until(free, now, "this key may send "+requests(l.PerMinute)+" a minute")
	case l.Concurrency > 0 && a.running >= l.Concurrency:
		return &Refused{RetryAfter: concurrencyRetry, text: "this key may have " + requests(l.Concurrency) + " under way at once, and has: try again when one has ended"}
	}
	return nil
}

func requests(n int) string {
	if n == 1 {
		return "1 request"
	}
	return strconv.Itoa(n) + " requests"
}

func until(reset, now time.Time, what string) *Refused {
	// Up to a whole second, so that nobody comes too early who reads the text.
	reset = reset.Add(time.Second - 1).Truncate(time.Second).UTC()
	return &Refused{
		Reset:      reset,
		RetryAfter: reset.Sub(now),
		text:       what + ": try again at " + reset.Format(time.RFC3339),
	}
}

func (a *Account) standing(l Limits, now time.Time) (s Standing) {
	if l.PerDay > 0 {
		s.Requests = gauge(int64(l.PerDay), int64(a.requests), a.day.end())
	}
	if l.PerMinute > 0 {
		full := now
		if n := len(a.minute); n > 0 {
			full = a.minute[n-1].Add(window)
		}
		minute := gauge(int64(l.PerMinute), int64(len(a.minute)), full)
		if l.PerDay == 0 || minute.Remaining < s.Requests.Remaining {
			s.Requests = minute
		}
	}
	if l.TokensPerDay > 0 {
		s.Tokens = gauge(l.TokensPerDay, a.tokens, a.day.end())
	}
	return s
}

func gauge(limit, used int64, reset time.Time) Gauge {
	return Gauge{Limit: limit, Remaining: max(0, limit-used), Reset: reset}
}

// Use is one request under way. A nil Use, of a request that was not counted, does nothing.
type Use struct {
	account *Account
	day     day
	done    bool // guarded by account.mu
}

// Spend counts tokens, on the day on which the request began: they count for nothing if
// that is over.
func (u *Use) Spend(tokens int64) {
	if u == nil {
		return
	}
	u.account.mu.Lock()
	defer u.account.mu.Unlock()
	if u.account.day == u.day {
		u.account.tokens += tokens
	}
}

// Done ends the request. It may be called more than once.
func (u *Use) Done() {
	if u == nil {
		return
	}
	u.account.mu.Lock()
	defer u.account.mu.Unlock()
	if !u.done {
		u.done = true
		u.account.running--
	}
}
