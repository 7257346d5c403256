package messagesapi

import "sync"

// Script decides the answer to a request to POST /v1/messages whose body is a
// well-formed one; Recorded.Turn numbers it. It is called from the goroutine of the
// request, so it may be called concurrently, and it must not block: what shall wait
// belongs into the answer (Pace, Gate, Hang).
type Script func(r *Recorded) Answer

// Always gives the same answer to everything.
func Always(a Answer) Script {
	return func(*Recorded) Answer { return a }
}

// Sequence gives the answers one after the other, each to one request, counting
// from the first request that this script sees; the last one repeats. Without
// answers it gives empty ones.
func Sequence(answers ...Answer) Script {
	var mu sync.Mutex
	next := 0 // guarded by mu
	return func(*Recorded) Answer {
		mu.Lock()
		defer mu.Unlock()
		if len(answers) == 0 {
			return Answer{}
		}
		a := answers[next]
		next = min(next+1, len(answers)-1)
		return a
	}
}

// Echo answers with the prompt: see Request.Prompt.
func Echo() Script { return ByPrompt(func(prompt string) Answer { return TextAnswer(prompt) }) }

// ByPrompt answers as the prompt demands (see Request.Prompt), so that concurrent
// clients can be told apart.
func ByPrompt(f func(prompt string) Answer) Script {
	return ByRequest(func(r Request) Answer { return f(r.Prompt()) })
}

// ByRequest answers as the decoded request demands.
func ByRequest(f func(Request) Answer) Script {
	return func(rec *Recorded) Answer {
		// The server has decoded the body before asking the script.
		request, _ := rec.Decode()
		return f(request)
	}
}
