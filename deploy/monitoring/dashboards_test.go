package monitoring

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// legendLabel is a label that a legend names.
var legendLabel = regexp.MustCompile(`{{([^}]*)}}`)

// TestDashboardsAskForWhatThereIs: every metric and label that a panel or its legend names is shown by a daemon.
func TestDashboardsAskForWhatThereIs(t *testing.T) {
	series := shown(t)
	// What every process shows is one row of the page.
	series["process_resident_memory_bytes"], series["process_cpu_seconds_total"] = nil, nil
	for _, d := range Dashboards {
		for _, row := range d.Rows {
			for _, panel := range row.Panels {
				for _, query := range panel.Queries {
					expr := strings.ReplaceAll(query.Expr, "$__rate_interval", "5m")
					wrong := series.Check(expr)
					if expression, err := promQL.ParseExpr(expr); err == nil {
						for _, named := range legendLabel.FindAllStringSubmatch(query.Legend, -1) {
							if !slices.Contains(series.labelsOf(expression), named[1]) {
								wrong = append(wrong, "there is no label "+named[1])
							}
						}
					}
					for _, w := range wrong {
						t.Errorf("%s, %s: %s", d.Name, panel.Title, w)
					}
				}
			}
		}
	}
}

// TestDashboardsAreCurrent: the chart has what is written here, and nothing else.
func TestDashboardsAreCurrent(t *testing.T) {
	there, err := filepath.Glob(filepath.Join(dashboardsDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range Dashboards {
		file := filepath.Join(dashboardsDir, d.Name+".json")
		there = slices.DeleteFunc(there, func(name string) bool { return name == file })
		want, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what this module makes (%v): run go generate here", file, err)
		}
	}
	for _, name := range there {
		t.Errorf("%s is of no dashboard here", name)
	}
}
