package kubeletmetrics

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// shown returns what the collectors show, one line for each metric; for a histogram the count, the sum and the
// number of buckets up to the greatest.
func shown(t *testing.T, all ...prometheus.Collector) []string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(all...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			line := family.GetName()
			for _, label := range metric.GetLabel() {
				line += " " + label.GetName() + "=" + label.GetValue()
			}
			switch h := metric.GetHistogram(); {
			case h != nil:
				line += fmt.Sprintf(" histogram %d %g of %d to %g", h.GetSampleCount(), h.GetSampleSum(), len(h.Bucket),
					h.Bucket[len(h.Bucket)-1].GetUpperBound())
			case metric.Counter != nil:
				line += fmt.Sprint(" counter ", metric.GetCounter().GetValue())
			default:
				line += fmt.Sprint(" gauge ", metric.GetGauge().GetValue())
			}
			out = append(out, line)
		}
	}
	return out
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// roughly returns lines whose last value is rounded down to whole minutes.
func roughly(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		i := strings.LastIndex(line, " ") + 1
		value, err := strconv.ParseFloat(line[i:], 64)
		if err == nil {
			line = line[:i] + fmt.Sprint(int(math.Floor(value/60)*60))
		}
		out = append(out, line)
	}
	return out
}
