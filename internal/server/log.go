package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"ocp/internal/admission"
	"ocp/internal/anthropic"
	"ocp/internal/openai"
	"ocp/internal/quota"
	"ocp/internal/turn"
)

// log writes the one line of a request, and with it the error that ended it. Turns
// are worth a line each; of the rest only what failed is.
func (s *Server) log(x *exchange, err error) {
	level, message := slog.LevelDebug, "request"
	attrs := []slog.Attr{slog.String("id", x.id)}
	if x.turn != nil {
		level, message = slog.LevelInfo, "turn"
		attrs = append(attrs, x.turn.attrs()...)
	} else {
		attrs = append(attrs, slog.String("method", x.r.Method), slog.String("path", clip(x.r.URL.Path)))
	}
	attrs = append(attrs,
		slog.Int("status", x.status),
		slog.String("outcome", outcome(err)),
		millis("total_ms", x.begun, time.Now()))
	if err != nil {
		level = max(level, severity(err))
		attrs = append(attrs, slog.String("err", errorText(err)))
	}
	if p, ok := errors.AsType[*panicked](err); ok {
		attrs = append(attrs, slog.String("stack", string(p.stack)))
	}
	s.options.Logger.LogAttrs(context.Background(), level, message, attrs...)
	if x.content != nil {
		s.options.Logger.LogAttrs(context.Background(), slog.LevelInfo, "content", append([]slog.Attr{slog.String("id", x.id)}, x.content.attrs()...)...)
	}
}

func (t *turnRecord) attrs() []slog.Attr {
	attrs := []slog.Attr{
		slog.String("key", t.Key),
		slog.String("dialect", t.Dialect),
		slog.String("model", t.Model),
		slog.Bool("stream", t.Streamed),
		slog.Int("deltas", t.DeltaCount),
		slog.Int("bytes", t.Bytes),
	}
	for _, at := range []struct {
		name string
		time time.Time
	}{{"queued_ms", t.Admitted}, {"started_ms", t.Started}, {"first_ms", t.First}, {"stopped_ms", t.Stopped}} {
		if !at.time.IsZero() {
			attrs = append(attrs, millis(at.name, t.Begun, at.time))
		}
	}
	if fin := t.Finished; fin.StopReason != "" {
		attrs = append(attrs,
			slog.String("served", fin.Model),
			slog.String("stop", string(fin.StopReason)),
			slog.String("way", string(fin.Stages.Way)),
			slog.Int("input_tokens", fin.Usage.Input),
			slog.Int("cache_read_tokens", fin.Usage.CacheRead),
			slog.Int("cache_creation_tokens", fin.Usage.CacheCreation),
			slog.Int("output_tokens", fin.Usage.Output),
			slog.Int("reordered", fin.Stats.Reordered),
			slog.Int("duplicates", fin.Stats.Duplicates),
			slog.Int("topped_up", fin.Stats.ToppedUp),
			slog.Int("input_checks", fin.Stats.InputChecks),
			slog.Int("input_diffs", fin.Stats.InputDiffs))
	}
	return attrs
}

// millis is how long after the start of the request something was.
func millis(name string, begun, at time.Time) slog.Attr {
	return slog.Int64(name, at.Sub(begun).Milliseconds())
}

// Limited is the outcome of a request that was beyond a limit of its key.
const Limited = "limited"

// outcome is one word for how a request ended.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	if failed, ok := errors.AsType[*turn.Error](err); ok {
		return string(failed.Kind)
	}
	if _, ok := errors.AsType[*admission.Refused](err); ok {
		return "refused"
	}
	if _, ok := errors.AsType[*quota.Refused](err); ok {
		return Limited
	}
	if _, ok := errors.AsType[*openai.Error](err); ok {
		return "bad_request"
	}
	if _, ok := errors.AsType[*anthropic.Error](err); ok {
		return "bad_request"
	}
	if f, ok := errors.AsType[*fault](err); ok && f.status < 500 {
		return "bad_request"
	}
	return "internal"
}

// severity is how much an operator should care: not about what clients do.
func severity(err error) slog.Level {
	switch outcome(err) {
	case string(turn.Canceled), string(turn.Shutdown), string(turn.InvalidRequest), string(turn.ContextLength),
		string(turn.ModelNotFound), string(turn.TooLarge), "bad_request", Limited:
		return slog.LevelInfo
	case string(turn.Diverged), "internal":
		return slog.LevelError
	}
	return slog.LevelWarn
}

// errorText is an error for the log. The message of a bad request may quote the
// client's text, so only its place is shown.
func errorText(err error) string {
	if bad, ok := errors.AsType[*anthropic.Error](err); ok {
		return strconv.Itoa(bad.Status) + " " + bad.Type + " (" + bad.Field + ")"
	}
	bad, ok := errors.AsType[*openai.Error](err)
	if !ok {
		return err.Error()
	}
	text := strconv.Itoa(bad.Status) + " " + cmp.Or(bad.Code, bad.Type)
	if bad.Param != "" {
		text += " (" + bad.Param + ")"
	}
	return text
}

// clip keeps a client's value from filling the log.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
