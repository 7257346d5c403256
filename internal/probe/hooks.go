package probe

import (
	"strings"
	"time"

	"ocp/internal/claude"
	"ocp/internal/turn"
)

// What is looked at with a session.

func (s *Setup) proxy() Check {
	c := Check{ID: "proxy", Claim: "no proxy comes between the CLI and ocp"}
	set := strings.Join(s.Proxies, ", ")
	switch {
	case len(s.Policy.Proxies) > 0:
		return c.warn("have 127.0.0.1 and localhost put into NO_PROXY there, if the check of the hooks fails",
			"managed settings set %s inside the CLI, where ocp's NO_PROXY may not count", strings.Join(s.Policy.Proxies, ", "))
	case len(s.Proxies) > 0:
		return c.ok("%s set: sessions go upstream by it, and get 127.0.0.1 and localhost in NO_PROXY for their hooks", set)
	}
	return c.ok("no proxy variable is set")
}

func (s *Setup) session() Check {
	c := Check{ID: "session", Claim: "a session starts"}
	if s.Session == nil {
		return c.skip("none was started: %s failed", s.Blocked())
	}
	on := ""
	if s.Session.Copy {
		on = ", with a copy of your configuration and without your login"
	}
	err := s.Session.Err
	switch {
	case err == nil || s.Session.Silent:
		return c.ok("one did%s; no turn ran in it", on)
	case err.Kind == turn.Canceled:
		return c.skip("it was called off")
	case err.Kind == turn.Authentication:
		return c.fail("run `claude` and log in with /login", "%s%s", err.Message, on)
	case !s.Session.Copy:
		return c.fail("run `ocp serve --log-level debug` to see more", "%s%s", withCause(err), on)
	}
	return c.fail("run `claude` in a terminal, answer what it asks, and end it", "%s%s", withCause(err), on)
}

func withCause(err *turn.Error) string {
	if err.Err == nil {
		return err.Message
	}
	return err.Message + " (" + strings.ReplaceAll(err.Err.Error(), "\n", "; ") + ")"
}

func (s *Setup) started() bool {
	return s.Session != nil && (s.Session.Err == nil || s.Session.Silent)
}

// hooks tells a policy from a proxy: nothing but a policy stops a hook that is a command,
// which SessionStart's always is.
func (s *Setup) hooks() Check {
	c := Check{ID: "hooks", Claim: "the CLI's hooks reach ocp, so that answers are streamed"}
	policy := strings.Join(s.Policy.Files, ", ")
	byCommand := claude.Transport(s.Settings.HookTransport) == claude.Command
	switch {
	case !s.started():
		return c.skip("no session has started")
	case s.Session.Silent && s.Policy.NoHooks != "":
		return c.fail("have the administrator remove "+s.Policy.NoHooks+" from "+policy+"; until then answers come whole and not streamed",
			"no hook runs: managed settings say %s (%s)", s.Policy.NoHooks, policy)
	case s.Session.Silent:
		return c.fail("look for a policy of this machine or of your organisation that forbids hooks, and have it allow them; until then answers come whole and not streamed",
			"the session is up and no hook has come, not even by command, though no managed settings were found that forbid it")
	case s.Session.HTTPSilent && byCommand:
		return c.fail("run `ocp serve --log-level debug` to see more", "SessionStart has come by command and SessionEnd has not")
	case s.Session.HTTPSilent && s.Policy.NoHTTP:
		return c.fail("give ocp --hook-transport command, or have http://127.0.0.1:* added to allowedHttpHookUrls in "+policy,
			"hooks come by command and not by http: managed settings limit where http hooks may go (allowedHttpHookUrls in %s)", policy)
	case s.Session.HTTPSilent:
		return c.fail("give ocp --hook-transport command, or put 127.0.0.1 into NO_PROXY where the proxy is set",
			"hooks come by command and not by http, which no managed settings forbid: a proxy captures them, set %s", s.proxySetBy())
	case !s.Session.Proved:
		return c.warn("run it again when the machine is less busy", "SessionStart has come by command; the session had to be killed before its end could show whether others come by %s", s.Settings.HookTransport)
	}
	return c.ok("they came by %s", s.Settings.HookTransport)
}

// proxySetBy is who can have set a proxy behind ocp's back.
func (s *Setup) proxySetBy() string {
	if len(s.Policy.Proxies) > 0 {
		return "by managed settings (" + strings.Join(s.Policy.Proxies, ", ") + " in " + strings.Join(s.Policy.Files, ", ") + ")"
	}
	if len(s.Proxies) > 0 {
		return "as " + strings.Join(s.Proxies, ", ") + ", and what starts the CLI drops the NO_PROXY that ocp gives it"
	}
	return "by what starts the CLI (" + s.CLI + ": is it a script?)"
}

func (s *Setup) boot() Check {
	c := Check{ID: "boot", Claim: "a session starts in good time"}
	if s.Session == nil || s.Session.Boot == 0 {
		return c.skip("no session has said that it has started")
	}
	took, bound := s.Session.Boot.Round(10*time.Millisecond), s.Settings.StartTimeout
	switch {
	case took > bound/2:
		return c.warn("give ocp a longer --start-timeout, or the machine less to do", "%s, of %s that it may take", took, bound)
	case took > slowBoot:
		return c.warn("see what else keeps the machine busy; with --pool sessions are started ahead", "%s; about a second is usual", took)
	}
	return c.ok("%s", took)
}
