package claude

import (
	"errors"
	"time"

	"ocp/internal/hook"
	"ocp/internal/prompt"
	"ocp/internal/transcript"
	"ocp/internal/turn"
)

// live runs the session to its end and cleans up behind it.
func (s *Session) live() error {
	defer s.route.Close()
	loop := sessionLoop{Session: s}
	loop.run()
	s.phase.Store(Ending)
	err := s.terminal.Close()
	s.noteFarewell()
	s.feed.close()
	if loop.follower != nil {
		loop.follower.Close()
	}
	return errors.Join(err, s.launcher.keep(s.place, s.id), s.place.remove())
}

// sessionLoop is the session's one goroutine: everything that happens in the session
// arrives here and is given to the turn, one thing after the other.
type sessionLoop struct {
	*Session
	now      *running             // nil until the conversation is given
	follower *transcript.Follower // nil until it is in place
	records  <-chan transcript.Record

	starting *time.Timer      // runs until the session is primed, and until its turn has started
	quiet    *time.Timer      // runs while the turn settles
	exit     *time.Timer      // runs when the process is gone
	resting  *time.Timer      // runs when the turn's last record is waited for
	looks    *time.Ticker     // nil when there is nothing to look for
	looking  <-chan time.Time // of looks

	seen   *dialog // what the last look at the screen showed
	takeUp takeUp
	stirs  int // hook calls and records
	boxes  int // looks that found the input box of a session that has not started
}

// run returns when the session is to be closed, or has ended without a turn.
func (l *sessionLoop) run() {
	l.quiet, l.exit, l.resting = stoppedTimer(), stoppedTimer(), stoppedTimer()
	l.starting = time.NewTimer(l.launcher.options.StartTimeout)
	defer l.starting.Stop()
	defer l.stopLooking()
	defer l.settled()
	opened, fed, gone := l.feed.opened, l.feed.done, l.terminal.Done()
	asks := l.asks
	for {
		var taker chan<- turn.Event
		var next turn.Event
		if l.now != nil {
			if len(l.now.out) > 0 && !l.now.held() {
				taker, next = l.now.events, l.now.out[0]
			} else if l.now.turn.Over() && !l.now.closed {
				l.now.close()
				if !l.now.lasting {
					l.phase.Store(Ending)
					<-l.stop
					return
				}
				l.resting.Reset(restBound)
				l.phase.Store(Kept)
				asks = l.asks
			}
			if l.now.closed && (gone == nil || l.records == nil || l.unfit()) {
				return
			}
		}
		select {
		case <-l.stop:
			l.end()
			return
		case r := <-asks:
			asks = nil
			l.begin(r)
		case taker <- next:
			l.now.out = l.now.out[1:]
		case <-opened:
			opened = nil
			l.atFIFO()
		case <-fed:
			fed = nil
			if l.now == nil {
				l.notPrimed("its FIFO is gone", nil)
				return
			}
			l.follow()
		case e := <-l.route.Events():
			l.hooked(e)
		case r, ok := <-l.records:
			l.record(r, ok)
		case <-l.quiet.C:
			l.take(l.now.turn.Quiet())
		case <-gone:
			gone = nil
			if l.now == nil {
				l.notPrimed("it has ended", l.terminal.Exit())
				return
			}
			l.stopLooking()
			l.poke()
			l.exit.Reset(exitBound)
		case <-l.exit.C:
			l.exited()
		case <-l.starting.C:
			if l.now == nil {
				l.notPrimed("it was not ready in time", nil)
				return
			}
			if !l.now.started() && !l.now.working() {
				l.late()
			}
		case <-l.looking:
			l.look()
		case <-l.resting.C:
			return
		}
	}
}

// atFIFO notes that the CLI waits for its conversation.
func (l *sessionLoop) atFIFO() {
	if l.now == nil {
		l.starting.Stop()
		l.phase.Store(Primed)
	}
	close(l.primed)
}

// begin starts a turn. The first one's conversation is taken when the CLI comes to the
// FIFO; what is typed later is another's business, and shows in UserPromptSubmit.
func (l *sessionLoop) begin(r *running) {
	before := l.now
	l.now = r
	l.phase.Store(Running)
	l.looks = time.NewTicker(lookEvery)
	l.looking = l.looks.C
	if r.typed {
		last := r.conversation.Messages[len(r.conversation.Messages)-1]
		r.input = before.input.next(prompt.Message{Role: prompt.Assistant, Content: before.answer}, last)
		return
	}
	l.feed.give(r.conversation)
	l.starting.Reset(l.launcher.options.StartTimeout)
}

// stopLooking ends the watch over the start, its bound included: a later turn has no start.
func (l *sessionLoop) stopLooking() {
	l.starting.Stop()
	if l.looks != nil {
		l.looks.Stop()
		l.looking = nil
	}
}

// settled lets go who waits for what will not come.
func (l *sessionLoop) settled() {
	if !isClosed(l.primed) {
		close(l.primed)
	}
	l.underWay()
	if l.now != nil {
		l.now.tell(errFeedClosed)
	}
}

// underWay notes that the session's boot is behind it.
func (l *sessionLoop) underWay() {
	if !isClosed(l.busy) {
		close(l.busy)
	}
}

// follow begins to read the transcript behind the conversation.
func (l *sessionLoop) follow() {
	r := l.now
	r.stages.Taken = time.Now()
	if l.feed.err != nil {
		r.tell(l.feed.err)
		l.fail(turn.SessionFailed, "the conversation could not be given to the session", l.feed.err)
		return
	}
	var err error
	l.follower, err = transcript.Follow(l.place.transcript, l.feed.size, transcript.Options{})
	r.tell(err)
	if err != nil {
		l.fail(turn.SessionFailed, "the session's transcript could not be followed", err)
		return
	}
	l.records = l.follower.Records()
}

func (l *sessionLoop) hooked(e hook.Event) {
	l.stirs++
	r := l.now
	if r == nil || r.others(e) {
		return
	}
	switch e.Name {
	case hook.UserPromptSubmit:
		l.submitted(e)
	case hook.SessionStart:
		r.stages.Ready = e.Received
		l.launcher.health.started()
	case hook.MessageDisplay:
		if r.stages.First.IsZero() {
			r.stages.First = e.Received
		}
	case hook.Stop, hook.StopFailure:
		if e.Name == hook.Stop && r.stages.Stopped.IsZero() {
			l.take([]turn.Event{turn.Verifying{}}, nil)
		}
		r.stages.Stopped = e.Received
		l.poke()
	}
	l.checkWorking()
	l.take(r.turn.Hook(e))
}

// record takes the next record; ok is false if there will be none.
func (l *sessionLoop) record(r transcript.Record, ok bool) {
	if !ok {
		l.records = nil
		l.fail(turn.SessionFailed, "the session's transcript could not be followed", l.follower.Err())
		return
	}
	l.stirs++
	now := l.now
	if now.typed && !now.begun {
		// The CLI waits for an answer to UserPromptSubmit before it writes the entry, but
		// which of the two is taken first here is chance.
		for len(l.route.Events()) > 0 {
			l.hooked(<-l.route.Events())
		}
		// What is before the turn's own user entry belongs to the turn before.
		now.begun = r.Type == "user" && r.PromptID == now.promptID && now.promptID != ""
		return
	}
	now.note(r)
	if now.tools != nil {
		if err := now.tools.record(r); err != nil {
			now.out = nil // it is the answer to another request
			if !now.started() {
				err = &turn.Error{Kind: turn.SessionFailed, Message: "tools cannot be offered: " + hooksSilent}
			}
			l.fail(err.Kind, err.Message, err.Err)
			return
		}
	}
	l.launcher.learn(l.key, r)
	l.checkWorking()
	l.take(now.turn.Record(r))
}

// unfit reports whether the session cannot be asked again after all, though its turn has
// ended well, and lets go who waits for its turn's last record once that is there.
func (l *sessionLoop) unfit() bool {
	r := l.now
	if !r.written || isClosed(r.rests) {
		return false
	}
	// An answer in several messages is one to the client and not to the CLI.
	if r.input.diffs > 0 || len(r.messages) != 1 || r.partial {
		return true
	}
	l.resting.Stop()
	close(r.rests)
	return false
}

// submitted notes that a prompt was typed into the session: the one that it was to be, or
// one that the receiver has blocked.
func (l *sessionLoop) submitted(e hook.Event) {
	r := l.now
	first := r.typed && !r.prompted
	var err error
	switch {
	case e.Blocked:
		l.fail(turn.SessionFailed, "the text that reached the Claude Code session was not the client's, and was blocked", nil)
		err = errOtherText
	case first && e.PromptID == "":
		l.fail(turn.SessionFailed, "the Claude Code session has not said which turn is the text's", nil)
		err = errNoPromptID
	case first:
		r.stages.Taken = e.Received
		l.take([]turn.Event{turn.Started{}}, nil)
	}
	if first {
		r.prompted, r.promptID = true, e.PromptID
		r.submitted <- err
	}
}

var (
	errOtherText  = errors.New("the input box has changed the text")
	errNoPromptID = errors.New("its prompt has no id")
)

// checkWorking ends the watch over the start once the turn shows itself.
func (l *sessionLoop) checkWorking() {
	if l.now.working() {
		l.underWay()
		l.stopLooking()
	}
}

func (l *sessionLoop) poke() {
	if l.follower != nil {
		l.follower.Poke()
	}
}

// take queues what the turn yields.
func (l *sessionLoop) take(events []turn.Event, err error) {
	r := l.now
	if r.ended {
		return
	}
	for _, e := range events {
		switch event := e.(type) {
		case turn.ToolCall:
			event.Name = r.tools.naming.client(event.Name)
			e = event
		case turn.Finished:
			if r.held() {
				r.out, err = nil, errToolsUnseen
				continue
			}
			e = l.finished(event)
		}
		r.queue(e)
	}
	if err != nil {
		r.err = err
	}
	switch {
	case r.turn.Over():
		r.ended = true
		l.finish()
	case r.turn.Settling():
		l.quiet.Reset(l.launcher.options.QuietBound)
	}
}

// finished adds to the end of a turn what the session knows of it.
func (l *sessionLoop) finished(f turn.Finished) turn.Finished {
	r := l.now
	r.stages.Ended = time.Now()
	r.cli = f.Session.CLIVersion
	f.Stats.InputChecks, f.Stats.InputDiffs = r.input.result()
	if r.tools != nil {
		f.Stats.InputChecks += len(r.tools.tools)
		f.Stats.InputDiffs += r.tools.diffs
	}
	f.Stages = r.stages
	r.lasting = l.launcher.unkept == "" && !l.check && r.tools == nil && f.StopReason == turn.EndTurn && !r.stages.Stopped.IsZero()
	return f
}

// finish begins to end the process once its turn is over; the client need not wait
// for it.
func (l *sessionLoop) finish() {
	r := l.now
	if r.err == nil {
		r.err = errTurnOver
		l.launcher.health.answered(r.cli, r.started() || r.promptID != "", !r.stages.First.IsZero() || !r.stages.Stopped.IsZero() || r.tools != nil)
	}
	r.tell(r.err)
	l.underWay()
	l.stopLooking()
	l.logStages()
	if l.place.private && !l.check && !r.lasting {
		l.terminal.Kill()
	}
}

// errTurnOver is what Next returns when it is called after the last event.
var errTurnOver = &turn.Error{Kind: turn.SessionFailed, Message: "the turn is over"}

// fail ends the turn for a reason of the session's own.
func (l *sessionLoop) fail(kind turn.Kind, message string, cause error) {
	if l.now.turn.Over() {
		return
	}
	l.now.turn.Abort()
	l.take(nil, &turn.Error{Kind: kind, Message: message, Err: cause})
}

// end is Close, whatever the session does.
func (l *sessionLoop) end() {
	if l.now == nil || l.now.closed {
		return
	}
	if !l.now.turn.Over() {
		l.fail(turn.Canceled, "the session was closed", nil)
	}
	l.now.close()
}

func (l *sessionLoop) logStages() {
	r := l.now
	since := func(t time.Time) time.Duration {
		if t.IsZero() {
			return 0
		}
		return t.Sub(r.stages.Given).Round(time.Millisecond)
	}
	stats := r.turn.Stats()
	l.launcher.log.Debug("session ended its turn", "session", shortID(l.id), "way", r.stages.Way,
		"spawned", since(r.stages.Spawned), "primed", since(r.stages.Taken), "started", since(r.stages.Ready),
		"first_delta", since(r.stages.First), "stop", since(r.stages.Stopped), "over", since(time.Now()),
		"deltas", stats.Deltas, "reordered", stats.Reordered, "duplicates", stats.Duplicates, "topped_up", stats.ToppedUp)
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
