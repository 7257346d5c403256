package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// TestNoCore looks at the limits of an ocp serve and of its sessions.
func TestNoCore(t *testing.T) {
	if _, err := os.Stat("/proc/self/limits"); err != nil {
		t.Skip("there is no /proc")
	}
	n := startNode(t)
	c := &cluster{rig: &rig{t: t, state: filepath.Join(t.TempDir(), "state"), url: "http://" + n.address}}
	gate, end := newGate(t), make(chan outcome, 1)
	go func() {
		model := c.model(answerThrough(gate, "", "fine\n"))
		end <- c.answer(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, c.request(paths[0], model, true), true, nil)
	}()
	var sessions []string
	if !eventually(t, func() bool {
		sessions = (&rig{state: n.state}).processes()
		return len(sessions) > 0 && n.status().Sessions.Running == 1
	}) {
		t.Fatal("no session has started")
	}
	none := regexp.MustCompile(`Max core file size +0 +0 `)
	for _, pid := range append(sessions, strconv.Itoa(n.cmd.Process.Pid)) {
		if limits, err := os.ReadFile(filepath.Join("/proc", pid, "limits")); err != nil || !none.Match(limits) {
			t.Errorf("process %s may leave a core: %v\n%s", pid, err, limits)
		}
	}
	gate.open()
	if o := <-end; !o.whole {
		t.Errorf("got %+v", o)
	}
}
