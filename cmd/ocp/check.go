package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"ocp/internal/claude"
	"ocp/internal/server"
	"ocp/internal/turn"
)

// Report is the server's view of what the launcher knows.
func (b *backend) Report() server.Report {
	h, primed, kept := b.launcher.Health(), b.pool.Stats(), b.kept.Stats()
	warnings, usage := h.Warnings, b.recorder.Stats()
	if usage.Failing {
		warnings = append(slices.Clone(warnings), "usage cannot be written at the moment, and is kept in memory: the log says why")
	}
	return server.Report{
		Usage:      server.UsageReport{Unwritten: usage.Unwritten, Failures: usage.Failures},
		Pool:       server.PoolReport(primed),
		Kept:       server.KeptReport{Off: b.launcher.Unkept(), Waiting: kept.Kept, Hits: kept.Hits, Evicted: kept.Evicted, Expired: kept.Expired, Died: kept.Died},
		CLIVersion: h.CLIVersion, CLITested: claude.Tested(h.CLIVersion), Checking: h.Checking,
		Faults: h.Faults, Warnings: warnings,
		Plan: h.Plan, SessionsStarted: h.Sessions,
		HooksAccepted: h.Hooks.Accepted, HooksRefused: h.Hooks.Refused,
	}
}

// checkStart checks once whether a session starts, and logs one line of what it has
// found. It ends when it is done or ctx is.
func checkStart(ctx context.Context, launcher *claude.Launcher, logger *slog.Logger) {
	err := launcher.Check(ctx)
	health := launcher.Health()
	failed, _ := errors.AsType[*turn.Error](err)
	switch {
	case ctx.Err() != nil:
	case failed != nil:
		logger.Error("the start-up check failed: requests will fail, or not be streamed, until this is put right",
			"reason", failed.Message, "err", failed.Err, "claude", health.CLIVersion,
			"remedy", "ocp doctor, with the flags of this serve, says what is wrong and what to do")
	case len(health.Warnings) > 0:
		logger.Warn("the start-up check passed with warnings: a session starts and its hooks reach ocp",
			"claude", health.CLIVersion, "warnings", health.Warnings)
	default:
		logger.Info("the start-up check passed: a session starts and its hooks reach ocp", "claude", health.CLIVersion)
	}
}
