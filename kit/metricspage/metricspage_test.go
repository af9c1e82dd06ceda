package metricspage

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

const page = `# Metrics
| ` + "`elsewhere`" + ` | gauge | |
## here
| name | type | labels |
|---|---|---|
| ` + "`a_total`" + ` | counter | x y |
| ` + "`b`" + ` | gauge | |
| ` + "`c` †" + ` | histogram | |
| ` + "`go_*`" + ` | | |
| ` + "`go_threads`" + ` † | gauge | |
## there
| ` + "`d`" + ` | gauge | |
`

// The test reports a family that the page lacks or has otherwise, and a row of a family that is not there.
func TestCompare(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metrics.md")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	const says = "the page says | `a_total` | counter | x y |, it is | `a_total` | counter | "
	for name, row := range map[string]struct {
		labels []string
		gauge  string
		want   []string
	}{
		"as it says":    {[]string{"x", "y"}, "b", nil},
		"another label": {[]string{"x", "z"}, "b", []string{says + "x z |"}},
		"a label less":  {[]string{"x"}, "b", []string{says + "x |"}},
		"another name": {[]string{"x", "y"}, "d",
			[]string{"not on the page: | `d` | gauge |  |", "not there: | `b` | gauge |  |"}},
		"of that prefix": {[]string{"x", "y"}, "go_b", []string{"not there: | `b` | gauge |  |"}},
		"of that prefix, with a row of its own": {[]string{"x", "y"}, "b",
			[]string{"the page says | `go_threads` | gauge |  |, it is | `go_threads` | counter |  |"}},
	} {
		registry := prometheus.NewRegistry()
		counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "a_total"}, row.labels)
		counter.WithLabelValues(make([]string, len(row.labels))...)
		registry.MustRegister(counter, prometheus.NewGauge(prometheus.GaugeOpts{Name: row.gauge}))
		if row.gauge != "go_b" {
			registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "go_goroutines"}))
		}
		if strings.HasSuffix(name, "of its own") {
			registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "go_threads"}))
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Compare(file, "here", families)
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%s: %s, %v", name, strings.Join(got, "\n"), err)
		}
	}
	if _, err := Compare(file, "nowhere", nil); err == nil {
		t.Error("a section that is not there is compared")
	}
}

// All headings are read; a row for several families yields no family.
func TestFamilies(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metrics.md")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	families, err := Families(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		got = append(got, family.Name+" "+family.Type+" "+strings.Join(family.Labels, ","))
	}
	if want := []string{"elsewhere gauge ", "a_total counter x,y", "b gauge ", "c histogram ", "go_threads gauge ",
		"d gauge "}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if _, err := Families(file + "x"); err == nil {
		t.Error("a page that is not there is read")
	}
}
