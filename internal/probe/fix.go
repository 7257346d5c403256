package probe

import (
	"errors"
	"fmt"
	"os"

	"ocp/internal/claude"
)

// Fix does what is safe and says what it did: it makes the state directory, closes it and
// the file of keys to others, and removes what an ocp that was killed has left. What could
// not be done is in the error.
func (s *Setup) Fix() (done []string, err error) {
	if s.KeysExposed {
		if err = os.Chmod(s.Settings.APIKeyFile, 0o600); err == nil {
			done = append(done, "closed "+s.Settings.APIKeyFile+" to others")
		}
	}
	did, failed := s.fixState()
	if err = errors.Join(err, failed); err != nil {
		err = fmt.Errorf("--fix: %w", err)
	}
	return append(done, did...), err
}

func (s *Setup) fixState() (done []string, err error) {
	l, dir := s.State, s.Settings.StateDir
	if s.stateDir().Status == Fail {
		return nil, nil
	}
	if !l.Exists {
		done = append(done, "made "+dir)
	}
	if l.Open {
		done = append(done, "closed "+dir+" to others")
	}
	if l.Left > 0 {
		done = append(done, fmt.Sprintf("removed %d sessions that an ocp which was killed had left in %s", l.Left, dir))
	}
	switch {
	case len(done) == 0:
	case l.Holder != "": // what it holds is its own to tidy
		err = os.Chmod(dir, 0o700)
	default:
		err = claude.TidyState(dir)
	}
	if err != nil {
		return nil, err
	}
	return done, nil
}
