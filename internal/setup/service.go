package setup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ocp/deploy"
	"ocp/internal/rewrite"
)

// A service is how this system runs ocp for a user.
type service struct {
	path string // of its file
	text string
	// usable says why the service manager cannot be asked; nil if it can.
	usable func(ctx context.Context) error
	start  [][]string // commands that start it, or start it anew
	logs   string     // command that shows what it says
	stop   string
	unable string // what to do where it cannot be asked
	after  string // what else there is to know
}

// older are the services of the older Node program, and what ends each.
var older = map[string]map[string]string{
	"linux": {
		".config/systemd/user/ocp-proxy.service":      "systemctl --user disable --now ocp-proxy",
		".config/systemd/user/openclaw-proxy.service": "systemctl --user disable --now openclaw-proxy",
	},
	"darwin": {
		"Library/LaunchAgents/dev.ocp.proxy.plist":     "launchctl bootout gui/$(id -u)/dev.ocp.proxy",
		"Library/LaunchAgents/ai.openclaw.proxy.plist": "launchctl bootout gui/$(id -u)/ai.openclaw.proxy",
	},
}

func (m Machine) service(cli string, args []string) (*service, error) {
	folders := []string{filepath.Dir(cli), filepath.Join(m.Home, ".local", "bin")}
	place := deploy.Place{Home: m.Home, Binary: m.Self, Args: args}
	switch m.OS {
	case "linux":
		folders = append(folders, "/usr/local/bin", "/usr/bin", "/bin")
		place.Path = unique(folders)
		return m.systemd(place), nil
	case "darwin":
		folders = append(folders, "/opt/homebrew/bin", "/usr/local/bin", "/usr/bin", "/bin")
		place.Path = unique(folders)
		return m.launchd(place), nil
	}
	return nil, fmt.Errorf("there is no service for %s here: start `ocp serve` by whatever starts your programs", m.OS)
}

func (m Machine) systemd(place deploy.Place) *service {
	text := deploy.UserUnit(place)
	return &service{
		path: filepath.Join(m.configHome(), "systemd", "user", "ocp.service"),
		text: text + sealed("# ", text, "\n"),
		usable: func(ctx context.Context) error {
			_, err := m.Run(ctx, "systemctl", "--user", "show-environment")
			return err
		},
		start: [][]string{
			{"systemctl", "--user", "daemon-reload"},
			{"systemctl", "--user", "enable", "ocp.service"},
			{"systemctl", "--user", "restart", "ocp.service"},
		},
		logs: "journalctl --user -u ocp -n 50",
		stop: "systemctl --user disable --now ocp",
		unable: "log in to this user's own session (not by su or sudo) and run `ocp setup` again; or start\n" +
			"`ocp serve` by whatever starts your programs; or install deploy/systemd/system/ocp.service",
		after: "It runs while you are logged in. `loginctl enable-linger` keeps it running beyond.",
	}
}

func (m Machine) launchd(place deploy.Place) *service {
	domain := fmt.Sprintf("gui/%d", m.UID)
	path := filepath.Join(m.Home, "Library", "LaunchAgents", deploy.Label+".plist")
	text := deploy.LaunchAgent(place)
	return &service{
		path: path,
		text: text + sealed("<!-- ", text, " -->\n"),
		usable: func(ctx context.Context) error {
			_, err := m.Run(ctx, "launchctl", "print", domain)
			return err
		},
		start: [][]string{
			{"-launchctl", "bootout", domain + "/" + deploy.Label}, // it may not be there
			{"launchctl", "bootstrap", domain, path},
		},
		logs:   "tail -n 50 ~/Library/Logs/ocp.log",
		stop:   "launchctl bootout " + domain + "/" + deploy.Label,
		unable: "run `ocp setup` again in a terminal of the logged-in user, or start `ocp serve` yourself",
	}
}

// sealed is a line by which a file that only setup has written is known again.
func sealed(before, text, after string) string {
	return fmt.Sprintf("%swritten by ocp setup: %x%s", before, sha256.Sum256([]byte(text)), after)
}

// untouched reports whether a file is as setup has written it.
func untouched(content []byte) bool {
	text := string(content)
	at := strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n") + 1
	return strings.Contains(text[at:], fmt.Sprintf("written by ocp setup: %x", sha256.Sum256([]byte(text[:at]))))
}

// install writes the service's file and starts it. It reports whether it was started.
func (s *setting) install(ctx context.Context, cli string) (bool, error) {
	svc, err := s.machine.service(cli, s.serveArgs())
	if err != nil {
		s.say("%v", err)
		return false, nil
	}
	if err := svc.usable(ctx); err != nil && !s.DryRun {
		s.say("The service manager of this user cannot be asked (%s):\n%s.", firstLine(err), svc.unable)
		return false, nil
	}
	change, err := rewrite.To(svc.path, 0o644, []byte(svc.text))
	if err != nil {
		return false, err
	}
	old, err := os.ReadFile(svc.path)
	if err == nil && !untouched(old) && change.Needed() {
		s.say("%s is not as setup has written it:\n%s", svc.path, change.Diff())
		replace, err := s.confirm("Write it anew?", false)
		if err != nil {
			return false, err
		}
		if !replace {
			s.say("It is left as it is. (Changes of your own are safe in `systemctl --user edit ocp`.)")
			change = nil
		}
	}
	if change != nil {
		if err := s.write(change); err != nil {
			return false, err
		}
	}
	if s.portTaken {
		s.say("It is not started: another program serves on its address.")
		return false, nil
	}
	if err := s.run(ctx, svc.start); err != nil {
		return false, err
	}
	if s.DryRun {
		return false, nil
	}
	s.say("The service runs. Its log: %s\nIts end: %s", svc.logs, svc.stop)
	if svc.after != "" {
		s.say("%s", svc.after)
	}
	return true, nil
}

// run runs commands, or says that they would be. One that begins with - may fail.
func (s *setting) run(ctx context.Context, commands [][]string) error {
	for _, command := range commands {
		name, mayFail := strings.CutPrefix(command[0], "-")
		line := strings.Join(append([]string{name}, command[1:]...), " ")
		if s.DryRun {
			s.say("would run  %s", line)
			continue
		}
		if out, err := s.machine.Run(ctx, name, command[1:]...); err != nil && !mayFail {
			return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(out))
		}
	}
	return nil
}

func unique(words []string) []string {
	var all []string
	for _, w := range words {
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return line
}

var errStopped = errors.New("nothing was changed")
