// Package bench makes figures out of measured turns: where the time of a turn goes, in
// medians with their spread, as a table, as JSON lines and as a picture. It says which
// figures are not to be trusted. It is pure: it measures nothing itself.
package bench

import "time"

// The ways a turn can be measured, in the order of a report.
const (
	Cold      = "cold"      // its session was started for it
	Pooled    = "pooled"    // started ahead, up to where the conversation goes in
	Continued = "continued" // the session had answered the conversation so far
)

var ways = []string{Cold, Pooled, Continued}

// Turn is one measured turn. Times are zero if they are not known: those of the model
// are known only of a scripted one.
type Turn struct {
	Run    int    // from 1
	Way    string // the way it went
	Wanted string // the way it was meant to go

	Request   time.Time // the client sent its request
	Admitted  time.Time // it had a slot
	Taken     time.Time // the CLI had taken the conversation
	Submitted time.Time // the model was asked
	Line      time.Time // the model had written its first line
	First     time.Time // the client had the first chunk with text
	Last      time.Time // the model had written its last byte
	Done      time.Time // the client had the end of the stream

	Spawned time.Time // the session's process was started
	Given   time.Time // the session was given the request
	Ready   time.Time // SessionStart came
	Stopped time.Time // Stop came
	Ended   time.Time // the answer was verified

	Deltas []Delta
	CLI    time.Duration // the CLI's own turn_duration; zero if it was not recorded

	RequestBytes int   // of the body that the model was sent
	SessionRSS   int64 // bytes; of the CLI's process at the first chunk
	OwnRSS       int64 // bytes; of ocp, with the bench and its scripted model
}

// Delta is the way of one delta.
type Delta struct {
	Line     time.Time // the model had written its last line
	Received time.Time // the hook call was received
	Written  time.Time // it was written to the client
	Client   time.Time // the client had it
}

// start is when the CLI began to work on the turn: at its start, or when a session that
// was there before was given the request.
func (t Turn) start() time.Time {
	if t.Way == Cold {
		return t.Spawned
	}
	return t.Given
}

// between is the milliseconds from one time to another, if both are known.
func between(from, to time.Time) (float64, bool) {
	if from.IsZero() || to.IsZero() {
		return 0, false
	}
	return millis(to.Sub(from)), true
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
