package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"go.yaml.in/yaml/v3"
)

// The files in deploy use no metric, label or fixed label value that there is not.
func TestDeployedNames(t *testing.T) {
	known := inventory(t)
	for _, expr := range alertExpressions(t) {
		known.check(t, expr)
	}
	for _, expr := range dashboardExpressions(t) {
		known.check(t, expr)
	}
}

func TestDeployedNamesAreFound(t *testing.T) {
	known := inventory(t)
	for expr, wrong := range map[string]string{
		`sum(rate(ocp_turns_total{outcome="ok"}[5m]))`:                              "",
		`histogram_quantile(0.9, sum by (le) (ocp_turn_stage_seconds_bucket))`:      "",
		`sum(rate(ocp_turn_total[5m]))`:                                             "ocp_turn_total",
		`ocp_turn_stage_seconds`:                                                    "ocp_turn_stage_seconds",
		`rate(ocp_turns_total{colour="ok"}[5m])`:                                    "colour",
		`ocp_sessions{state=~"primed|lost"}`:                                        "lost",
		`sum by (colour) (ocp_sessions)`:                                            "colour",
		`process_open_fds and go_goroutines > 5e3 or made_up(ocp_ready{job="ocp"})`: "made_up",
	} {
		if got := known.unknown(expr); got != wrong {
			t.Errorf("%s: found %q, want %q", expr, got, wrong)
		}
	}
}

// known is what an expression may name.
type known struct {
	metrics map[string]bool
	labels  map[string]map[string]bool // with the values that the sample has
}

// scraped are the labels that a scrape adds, and le, which a histogram has.
var scraped = []string{"instance", "job", "le"}

// free are labels whose values the sample has few of.
var free = []string{"outcome", "model", "key", "version", "tested", "way", "go_version", "dialect"}

func inventory(t *testing.T) known {
	k := known{metrics: map[string]bool{"up": true}, labels: map[string]map[string]bool{}}
	for name, f := range gather(t, sample()) {
		names := []string{name}
		if f.GetType() == dto.MetricType_HISTOGRAM {
			names = []string{name + "_bucket", name + "_sum", name + "_count"}
		}
		for _, name := range names {
			k.metrics[name] = true
		}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if k.labels[l.GetName()] == nil {
					k.labels[l.GetName()] = map[string]bool{}
				}
				k.labels[l.GetName()][l.GetValue()] = true
			}
		}
	}
	for _, name := range scraped {
		k.labels[name] = map[string]bool{}
	}
	return k
}

var (
	selector  = regexp.MustCompile(`\{[^}]*\}`)
	matcher   = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping  = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
	leftovers = regexp.MustCompile(`\[[^\]]*\]|\$\w+`) // ranges, variables of the dashboard
	word      = regexp.MustCompile(`\b[a-zA-Z_][a-zA-Z0-9_]*\b`)
)

// promql are the words of the language that the files use.
var promql = []string{"sum", "max", "min", "rate", "increase", "histogram_quantile", "and", "or", "group_left"}

// unknown returns the first name in an expression that there is not.
func (k known) unknown(expr string) string {
	for _, m := range matcher.FindAllStringSubmatch(strings.Join(selector.FindAllString(expr, -1), " "), -1) {
		values, ok := k.labels[m[1]]
		if !ok {
			return m[1]
		}
		for value := range strings.SplitSeq(m[3], "|") {
			if !slices.Contains(scraped, m[1]) && !slices.Contains(free, m[1]) && !values[value] {
				return value
			}
		}
	}
	expr = selector.ReplaceAllString(expr, "")
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for _, label := range word.FindAllString(m[1], -1) {
			if k.labels[label] == nil {
				return label
			}
		}
	}
	expr = leftovers.ReplaceAllString(grouping.ReplaceAllString(expr, ""), "")
	for _, name := range word.FindAllString(expr, -1) {
		if !k.metrics[name] && !slices.Contains(promql, name) {
			return name
		}
	}
	return ""
}

func (k known) check(t *testing.T, expr string) {
	t.Helper()
	if name := k.unknown(expr); name != "" {
		t.Errorf("there is no %s, in %s", name, expr)
	}
}

func alertExpressions(t *testing.T) (list []string) {
	t.Helper()
	data, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	d := yaml.NewDecoder(strings.NewReader(string(data)))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("the rule %+v says too little", r)
			}
			list = append(list, r.Expr)
		}
	}
	if len(list) == 0 {
		t.Fatal("there is no rule")
	}
	return list
}

func dashboardExpressions(t *testing.T) (list []string) {
	t.Helper()
	data, err := os.ReadFile("../../deploy/grafana/ocp.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Panels []struct {
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, p := range file.Panels {
		if p.Title == "" || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("the panel %+v is not whole", p)
		}
		for _, target := range p.Targets {
			list = append(list, target.Expr)
		}
	}
	if len(list) == 0 {
		t.Fatal("there is no panel")
	}
	return list
}
