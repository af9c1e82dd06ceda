package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/audit"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// block is how many requests are timed together.
const block = 25

// BenchmarkFilters measures what each filter adds to a request: the chain as it is without flags against the same
// without the one filter, and the chain with each switch against the one without. That is what stands in the table of
// filters. The request has in its context what the filters leave there, so that the others do their work where one is
// missing.
func BenchmarkFilters(b *testing.B) {
	options, config := chainConfig(b)
	base := options.filters(config)
	none := handlerFor(b, config, nil)
	b.Run("all", func(b *testing.B) { compare(b, handlerFor(b, config, base), none) })
	for i, f := range base {
		b.Run(f.name, func(b *testing.B) {
			compare(b, handlerFor(b, config, base), handlerFor(b, config, slices.Delete(slices.Clone(base), i, i+1)))
		})
	}
	for name, change := range map[string]func(*testing.B, *Options, *genericapiserver.Config){
		"audit": switchAudit, "tracing": switchTracing, "priority-and-fairness": switchFlowControl,
	} {
		b.Run(name, func(b *testing.B) {
			options, changed := chainConfig(b)
			change(b, options, changed)
			if err := options.observe(changed); err != nil {
				b.Fatal(err)
			}
			compare(b, handlerFor(b, changed, options.filters(changed)), handlerFor(b, config, base))
		})
	}
}

// compare reports how much more a request costs with the one handler than with the other. It times them in turn and
// takes the median, so that what else the machine does weighs little.
func compare(b *testing.B, with, without func()) {
	var more []float64
	for b.Loop() {
		more = append(more, float64(timed(with)-timed(without))/block)
	}
	slices.Sort(more)
	b.ReportMetric(more[len(more)/2], "ns/request")
	b.ReportMetric(testing.AllocsPerRun(block, with)-testing.AllocsPerRun(block, without), "allocs/request")
	b.ReportMetric(0, "ns/op")
}

func timed(do func()) time.Duration {
	begin := time.Now()
	for range block {
		do()
	}
	return time.Since(begin)
}

// switchAudit records every request into a file that is not kept.
func switchAudit(b *testing.B, options *Options, _ *genericapiserver.Config) {
	options.Audit.PolicyFile = filepath.Join(b.TempDir(), "policy.yaml")
	writeFile(b, options.Audit.PolicyFile,
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n")
	options.Audit.LogOptions.Path = os.DevNull
	options.Audit.LogOptions.MaxSize = 0
}

// switchTracing samples no request: it is what tracing costs all of them.
func switchTracing(b *testing.B, options *Options, _ *genericapiserver.Config) {
	options.Tracing.ConfigFile = filepath.Join(b.TempDir(), "tracing.yaml")
	writeFile(b, options.Tracing.ConfigFile, "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"+
		"endpoint: 127.0.0.1:1\nsamplingRatePerMillion: 0\n")
}

// switchFlowControl takes the place of the limit on requests in flight.
func switchFlowControl(b *testing.B, _ *Options, config *genericapiserver.Config) {
	config.FlowControl = flowControl()
	go func() { _ = config.FlowControl.Run(b.Context().Done()) }()
}

// handlerFor answers one request through the filters.
func handlerFor(b *testing.B, config *genericapiserver.Config, in []filter) func() {
	prepared := request()
	NewOptions().wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		prepared = r.WithContext(withoutAudit{context.WithoutCancel(r.Context())})
	}), NewOptions().filters(config), config).ServeHTTP(httptest.NewRecorder(), prepared)
	token := request().Header["Authorization"]
	handler := NewOptions().wrap(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }),
		in,
		config,
	)
	return func() {
		response := httptest.NewRecorder()
		prepared.Header["Authorization"] = token // authentication takes it away
		handler.ServeHTTP(response, prepared)
		if response.Code != http.StatusOK {
			b.Fatal(response.Code, response.Body)
		}
	}
}

// withoutAudit has no record of an earlier request: each has its own.
type withoutAudit struct{ context.Context }

// Value implements context.Context.
func (c withoutAudit) Value(key any) any {
	value := c.Context.Value(key)
	if _, is := value.(*audit.AuditContext); is {
		return nil
	}
	return value
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
