// Package probe is named checks with evidence and remedy. It judges; what is judged is
// given to it or gathered by it. Nothing but Fix changes anything. Its experiments prove on
// the CLI that is installed what OCP relies on.
package probe

// Status is what a check has come to.
type Status string

// The statuses.
const (
	OK   Status = "ok"
	Warn Status = "warn" // it works, and not as it could
	Fail Status = "fail"
	Skip Status = "skip" // not looked at: the evidence says why
)

// Check is one finding.
type Check struct {
	ID       string `json:"id"`    // stable, such as "cli-found"
	Claim    string `json:"claim"` // what should hold, one line
	Status   Status `json:"status"`
	Evidence string `json:"evidence"`         // what was seen; no secrets, no text of conversations
	Remedy   string `json:"remedy,omitempty"` // what to do about it; empty if it is ok
}

// Failed is how many of the checks have failed.
func Failed(checks []Check) int {
	failed := 0
	for _, c := range checks {
		if c.Status == Fail {
			failed++
		}
	}
	return failed
}
