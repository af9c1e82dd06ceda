package monitoring

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The folders of what is tested, and the pages that it refers to.
const (
	rulesDir      = "../helm/keelson/charts/monitoring/rules"
	dashboardsDir = "../helm/keelson/charts/monitoring/dashboards"
	metricsPage   = "../../docs/reference/metrics.md"
	repository    = "../.."
)

func shown(t *testing.T) Series {
	t.Helper()
	series, err := Shown(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	return series
}

// What a query names and no daemon shows is told, each thing once.
func TestCheck(t *testing.T) {
	page := filepath.Join(t.TempDir(), "metrics.md")
	const table = "## A daemon\n| `a_total` | counter | x y |\n| `h` † | histogram | x |\n| `s` | summary | |\n" +
		"| `open_*` | | |\n## Another\n| `a_total` | counter | z |\n"
	if err := os.WriteFile(page, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	series, err := Shown(page)
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string][]string{
		`sum by (x, job) (rate(a_total{y="1",instance="i"}[5m])) > 0`: nil,
		`a_total{z="1"}`: nil,
		`histogram_quantile(0.9, sum by (le, x) (rate(h_bucket[5m])))`: nil,
		`h_sum / h_count + s_sum / s_count`:                            nil,
		`s{quantile="0.5"}`:                                            nil,
		`absent(up{job="a"} == 1)`:                                     nil,
		`b_total`:                                                      {"no daemon shows b_total"},
		`open_a`:                                                       {"no daemon shows open_a"},
		`h`:                                                            {"no daemon shows h"},
		`a_total{q!="1"}`:                                              {"a_total has no label q"},
		`up{x="1"}`:                                                    {"up has no label x"},
		`sum by (le) (a_total)`:                                        {"groups by le, which a_total does not have"},
		`a_total * on (q) s_sum`: {
			"matches by q, which a_total * on (q) s_sum does not have"},
		`a_total * on (x) group_left (q) h_sum`: {
			"takes over q, which a_total * on (x) group_left (q) h_sum does not have"},
	} {
		got := series.Check(query)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%q, want\n%q", query, got, want)
		}
	}
	if got := series.Check("a_total[5m"); len(got) != 1 || !strings.Contains(got[0], "parse error") {
		t.Errorf("half a query: %q", got)
	}
}
