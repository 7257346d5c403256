package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ocp/internal/messagesapi"
)

// figures are samples of one quantity.
type figures []float64

func (f figures) median() float64 {
	sorted := slices.Sorted(slices.Values(f))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// BenchmarkColdTurn measures where the time of a turn goes, in medians over its
// iterations: `make bench`. Each turn has a session of its own, started for it.
func BenchmarkColdTurn(b *testing.B) {
	for _, c := range clis {
		b.Run(c.version, func(b *testing.B) {
			lines := strings.Repeat("A line of the answer, as long as lines are.\n", 10)
			p := startProxy(b, c, proxyOptions{script: messagesapi.Always(messagesapi.Answer{
				Parts: []messagesapi.Part{messagesapi.Text(lines)}, Pace: messagesapi.Pace{First: 50 * time.Millisecond, Between: 50 * time.Millisecond},
			})})
			samples := map[string]figures{}
			for b.Loop() {
				p.measure(b, samples)
			}
			p.stages(b, samples)
			b.ReportMetric(0, "ns/op")
			for unit, f := range samples {
				b.ReportMetric(f.median(), unit)
			}
		})
	}
}

// measure takes the samples of one turn.
func (p *proxy) measure(b *testing.B, samples map[string]figures) {
	p.model.Reset()
	add := func(unit string, d time.Duration) {
		samples[unit] = append(samples[unit], float64(d.Microseconds())/1000)
	}
	start := time.Now()
	s := p.stream(b.Context(), user("Hello there."))
	if _, more := s.next(); !more {
		b.Fatal(s.Err())
	}
	first := time.Now()
	samples["ocp-rss-MB"] = append(samples["ocp-rss-MB"], rss(fmt.Sprint(p.cmd.Process.Pid)))
	for _, session := range p.processes() {
		samples["session-rss-MB"] = append(samples["session-rss-MB"], rss(session.pid))
	}
	s.mustReadAll(b)
	end := time.Now()
	asked := p.model.Turns()[0]
	line := asked.Arrived
	for _, e := range asked.Events() {
		if e.Name == "content_block_delta" {
			line = e.At
			break
		}
	}
	add("ms-request-to-api", asked.Arrived.Sub(start))
	add("ms-line-to-chunk", first.Sub(line))
	add("ms-last-byte-to-done", end.Sub(asked.LastByte()))
	add("ms-request-to-chunk", first.Sub(start))
	samples["request-bytes"] = append(samples["request-bytes"], float64(len(asked.Body)))
}

// stages takes what the debug log says of each session's boot.
func (p *proxy) stages(b *testing.B, samples map[string]figures) {
	for _, line := range strings.Split(p.log.text(), "\n") {
		if !strings.Contains(line, "session ended its turn") {
			continue
		}
		for _, stage := range []string{"primed", "started"} {
			found := regexp.MustCompile(stage + `=(\S+)`).FindStringSubmatch(line)
			if found == nil {
				continue
			}
			d, err := time.ParseDuration(found[1])
			if err != nil {
				b.Fatal(err)
			}
			unit := "ms-spawn-to-" + stage
			samples[unit] = append(samples[unit], float64(d.Milliseconds()))
		}
	}
}

// rss is a process's resident memory in MB.
func rss(pid string) float64 {
	status, _ := os.ReadFile(filepath.Join("/proc", pid, "status"))
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0
	}
	kb, _ := strconv.ParseFloat(string(found[1]), 64)
	return kb / 1024
}
