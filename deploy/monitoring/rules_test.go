package monitoring

import (
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

// trial is what an alert is tried by: series with a value for each minute, by which it fires before half an hour is
// over, and others, just below its bound, by which it does not from the minute After on.
type trial struct {
	Fires, Quiet []string
	After        int
}

// trials are those of the alerts of a file, by their names.
func trials(t *testing.T, file string) map[string]trial {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]trial
	if err := yaml.UnmarshalStrict(content, &all); err != nil {
		t.Fatalf("reading the trials of %s: %v", file, err)
	}
	return all
}

// TestEachAlertFires has each alert fire once, and not just below its bound.
func TestEachAlertFires(t *testing.T) {
	all, err := Rules(rulesDir)
	if err != nil {
		t.Fatal(err)
	}
	series := shown(t)
	for file, alerts := range all {
		tried := trials(t, file)
		for _, rule := range alerts {
			t.Run(rule.Alert, func(t *testing.T) {
				trial, ok := tried[rule.Alert]
				if !ok {
					t.Fatalf("testdata/%s does not try it", file)
				}
				for _, line := range append(trial.Fires, trial.Quiet...) {
					for _, wrong := range series.Check(strings.Fields(line)[0]) {
						t.Errorf("it is tried with %s: %s", line, wrong)
					}
				}
				fired := firing(t, rule, trial.Fires, 0)
				if len(fired) != 1 {
					t.Errorf("%d alerts fire, want one", len(fired))
				}
				for _, alert := range fired {
					expectFilledIn(t, alert)
				}
				for _, alert := range firing(t, rule, trial.Quiet, trial.After) {
					t.Errorf("below its bound it fires with %v", alert.Value)
				}
			})
			delete(tried, rule.Alert)
		}
		for name := range tried {
			t.Errorf("testdata/%s tries %s, which is no alert", file, name)
		}
	}
}

// firing evaluates an alert each minute for half an hour, and returns what fires from a minute on.
func firing(t *testing.T, rule rulefmt.Rule, series []string, from int) []*rules.Alert {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.Join(series, "\n  ")+"\n")
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, promqltest.DefaultMaxSamplesPerQuery)
	query := rules.EngineQueryFunc(engine, storage)
	expression, err := promQL.ParseExpr(rule.Expr)
	if err != nil {
		t.Fatal(err)
	}
	alert := rules.NewAlertingRule(rule.Alert, expression, time.Duration(rule.For), time.Duration(rule.KeepFiringFor),
		labels.FromMap(rule.Labels), labels.FromMap(rule.Annotations), labels.EmptyLabels(), "", true,
		slog.New(slog.DiscardHandler))
	seen := map[string]*rules.Alert{}
	for minute := range 31 {
		at := time.Unix(0, 0).Add(time.Duration(minute) * time.Minute)
		if _, err := alert.Eval(t.Context(), 0, at, query, &url.URL{}, 0); err != nil {
			t.Fatal(err)
		}
		for _, active := range alert.ActiveAlerts() {
			if active.State == rules.StateFiring && minute >= from {
				seen[active.Labels.String()] = active
			}
		}
	}
	return slices.Collect(maps.Values(seen))
}

// expectFilledIn checks what somebody reads of an alert.
func expectFilledIn(t *testing.T, alert *rules.Alert) {
	t.Helper()
	summary := alert.Annotations.Get("summary")
	t.Log(summary)
	for _, hole := range []string{"<error", "<no value>", "{{", "  ", " .", "NaN", "Inf"} {
		if strings.Contains(summary, hole) {
			t.Errorf("its summary is %q", summary)
		}
	}
	if severity := alert.Labels.Get("severity"); severity != "critical" && severity != "warning" {
		t.Errorf("its severity is %q", severity)
	}
}

// TestRulesAskForWhatThereIs: every metric and label that a rule names is shown by a daemon, and every runbook is on a
// page.
func TestRulesAskForWhatThereIs(t *testing.T) {
	all, err := Rules(rulesDir)
	if err != nil {
		t.Fatal(err)
	}
	series, names := shown(t), map[string]bool{}
	for file, alerts := range all {
		for _, rule := range alerts {
			if names[rule.Alert] || !strings.HasPrefix(rule.Alert, "Keelson") {
				t.Errorf("%s: %q is no name of its own that begins with Keelson", file, rule.Alert)
			}
			names[rule.Alert] = true
			for _, wrong := range series.Check(rule.Expr) {
				t.Errorf("%s: %s %s", file, rule.Alert, wrong)
			}
			if err := findSection(rule.Annotations["runbook_url"], rule.Alert); err != nil {
				t.Errorf("%s: the runbook of %s: %v", file, rule.Alert, err)
			}
		}
	}
}

// findSection looks whether a link leads to the section of a page.
func findSection(link, section string) error {
	page, anchor, _ := strings.Cut(link, "#")
	if anchor != strings.ToLower(section) {
		return fmt.Errorf("%q leads elsewhere", link)
	}
	content, err := os.ReadFile(filepath.Join(repository, page))
	if err != nil {
		return err
	}
	if !strings.Contains(string(content), "\n## "+section+"\n") {
		return fmt.Errorf("%s has no such section", page)
	}
	return nil
}
