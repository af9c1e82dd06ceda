package scenario

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
)

// MetricFamilies reads a page of metrics, by their names.
func MetricFamilies(page io.Reader) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(page)
}

// FamiliesInOrder returns the metric families of a page, ordered by their names.
func FamiliesInOrder(families map[string]*dto.MetricFamily) []*dto.MetricFamily {
	return slices.SortedFunc(maps.Values(families),
		func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
}

// MetricsOf asks a server of the mesh for its metrics, as the administrator.
func MetricsOf(t testing.TB, admin *rest.Config, host string) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := askForMetrics(admin, host)
	if err != nil {
		t.Fatalf("reading the metrics of %s: %v", host, err)
	}
	return families
}

func askForMetrics(admin *rest.Config, host string) (map[string]*dto.MetricFamily, error) {
	transport, err := rest.TransportFor(admin)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Transport: transport}).Get(host + "/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body) // as much as there is
		return nil, fmt.Errorf("the answer is %s\n%s", response.Status, text)
	}
	return MetricFamilies(response.Body)
}
