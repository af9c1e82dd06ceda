package servertest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// auditPolicy records ConfigMaps with what is written, who could not say who they are, and nothing else.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Request, resources: [{group: "", resources: [configmaps]}], users: [admin, ann]}
- {level: Metadata, nonResourceURLs: [/unknown]}
- {level: None}
`

// TestAudit: what the policy asks for is in the log, and nothing else.
func TestAudit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	s := servertest.Start(t, func(c *inproc.Config) {
		c.Audit.PolicyFile = writeConfig(t, dir, "policy.yaml", auditPolicy)
		c.Audit.LogOptions.Path = path
	})
	create(t, s.Client.CoreV1().ConfigMaps("default"), configMap("audited", map[string]string{"k": "v"}))
	_, refused := s.As(t, "ann").CoreV1().ConfigMaps("default").Get(t.Context(), "audited", metav1.GetOptions{})
	if refused == nil {
		t.Fatal("ann may read ConfigMaps")
	}
	fetch(t, s.ConfigAs("stranger"), "/unknown", nil)
	if _, err := s.Client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	events := readAudit(t, path)
	if len(events) != 3 {
		t.Fatalf("%d records, want 3: %+v", len(events), events)
	}
	for i, want := range []string{"create admin 201 v ResponseComplete",
		"get ann 403  ResponseComplete", "get  401  ResponseStarted"} {
		e := events[i]
		var written corev1.ConfigMap
		if e.RequestObject != nil {
			if err := json.Unmarshal(e.RequestObject.Raw, &written); err != nil {
				t.Fatal(err)
			}
		}
		got := fmt.Sprintf("%s %s %d %s %s", e.Verb, e.User.Username, e.ResponseStatus.Code, written.Data["k"], e.Stage)
		if got != want {
			t.Errorf("record %d is %q, want %q", i, got, want)
		}
	}
}

func readAudit(t *testing.T, path string) []auditv1.Event {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var events []auditv1.Event
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var e auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		events = append(events, e)
	}
	return events
}

// The trace and the span that a client says it is in.
const (
	clientTrace = "0af7651916cd43dd8448eb211c80319c"
	clientSpan  = "b7ad6b7169203331"
)

// TestTracing: every request is a span, which carries on the trace of a client that is trusted, and begins one of its
// own for every other.
func TestTracing(t *testing.T) {
	collector := startCollector(t)
	dir := t.TempDir()
	s := servertest.Start(t, func(c *inproc.Config) {
		c.Tracing.ConfigFile = writeConfig(t, dir, "tracing.yaml", fmt.Sprintf(
			"apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: %s\n"+
				"samplingRatePerMillion: 1000000\n", collector.address))
	})
	header := http.Header{"Traceparent": {"00-" + clientTrace + "-" + clientSpan + "-01"}}
	// The server itself asks for no object of these kinds.
	fetch(t, s.ConfigAs(servertest.Admin), "/api/v1/namespaces/default/podtemplates/traced", header)
	fetch(t, s.ConfigAs("ann"), "/api/v1/namespaces/default/replicationcontrollers/traced", header)
	if err := s.Stop(); err != nil { // sends the rest
		t.Fatal(err)
	}
	trusted := collector.span(t, "GET /api/v1/namespaces/{:namespace}/podtemplates/{:name}")
	if got := fmt.Sprintf("%x %x", trusted.TraceId, trusted.ParentSpanId); got != clientTrace+" "+clientSpan {
		t.Errorf("an administrator's request belongs to %s", got)
	}
	other := collector.span(t, "GET /api/v1/namespaces/{:namespace}/replicationcontrollers/{:name}")
	if got := fmt.Sprintf("%x", other.TraceId); got == clientTrace || len(other.ParentSpanId) != 0 {
		t.Errorf("a stranger's request belongs to %s, under %x", got, other.ParentSpanId)
	}
}

// collector takes spans as an OpenTelemetry collector does.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	address string

	mu    sync.Mutex // guards below
	spans []*tracev1.Span
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{address: listener.Addr().String()}
	server := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return c
}

// Export implements TraceServiceServer.
func (c *collector) Export(
	_ context.Context, r *collectorv1.ExportTraceServiceRequest,
) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// span is the only one of that name.
func (c *collector) span(t *testing.T, name string) *tracev1.Span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*tracev1.Span
	for _, span := range c.spans {
		if span.Name == name {
			found = append(found, span)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans called %s", len(found), name)
	}
	return found[0]
}

// needsBoth is what a policy without a way out is told, and the reverse.
const needsBoth = "--audit-policy-file: needs --audit-log-path or --audit-webhook-config-file, and the reverse"

// TestWrongObservability: what cannot be followed stops the start with one sentence.
func TestWrongObservability(t *testing.T) {
	dir := t.TempDir()
	for name, row := range map[string]struct {
		change func(*inproc.Config)
		want   string
	}{
		"a policy without a log": {func(c *inproc.Config) {
			c.Audit.PolicyFile = writeConfig(t, dir, "policy.yaml", auditPolicy)
		}, needsBoth},
		"a log without a policy": {func(c *inproc.Config) { c.Audit.LogOptions.Path = filepath.Join(dir, "log") },
			needsBoth},
		"a policy that is missing": {func(c *inproc.Config) {
			c.Audit.PolicyFile, c.Audit.LogOptions.Path = filepath.Join(dir, "none"), filepath.Join(dir, "log")
		}, "--audit-policy-file: stat "},
		"a policy that is none": {func(c *inproc.Config) {
			c.Audit.PolicyFile = writeConfig(t, dir, "wrong.yaml", strings.ReplaceAll(auditPolicy, "Request,", "Most,"))
			c.Audit.LogOptions.Path = filepath.Join(dir, "log")
		}, `--audit-policy-file: `},
		"a log that cannot be written": {func(c *inproc.Config) {
			c.Audit.PolicyFile = writeConfig(t, dir, "policy.yaml", auditPolicy)
			c.Audit.LogOptions.Path = dir
		}, "--audit-log-path: "},
		"fewer than no old logs": {func(c *inproc.Config) {
			c.Audit.PolicyFile = writeConfig(t, dir, "policy.yaml", auditPolicy)
			c.Audit.LogOptions.Path, c.Audit.LogOptions.MaxBackups = filepath.Join(dir, "log"), -1
		}, "--audit-log-maxbackup -1 can't be a negative number"},
		"a receiver without a policy": {func(c *inproc.Config) {
			c.Audit.WebhookOptions.ConfigFile = writeConfig(t, dir, "receiver.yaml", "{}")
		}, needsBoth},
		"a receiver that is missing": {func(c *inproc.Config) {
			c.Audit.PolicyFile = writeConfig(t, dir, "policy.yaml", auditPolicy)
			c.Audit.WebhookOptions.ConfigFile = filepath.Join(dir, "none")
		}, "--audit-webhook-config-file: stat "},
		"a receiver that is none": {func(c *inproc.Config) {
			c.Audit.PolicyFile = writeConfig(t, dir, "policy.yaml", auditPolicy)
			c.Audit.WebhookOptions.ConfigFile = writeConfig(t, dir, "receiver.yaml", "{}")
		}, "--audit-webhook-config-file: " + dir + "/receiver.yaml: "},
		"a mode that is none": {func(c *inproc.Config) {
			c.Audit.PolicyFile = writeConfig(t, dir, "policy.yaml", auditPolicy)
			c.Audit.WebhookOptions.ConfigFile = writeConfig(t, dir, "receiver.yaml", "{}")
			c.Audit.WebhookOptions.BatchOptions.Mode = "sometimes"
		}, "invalid audit webhook mode sometimes, allowed modes are"},
		"no room": {func(c *inproc.Config) {
			c.Audit.PolicyFile = writeConfig(t, dir, "policy.yaml", auditPolicy)
			c.Audit.WebhookOptions.ConfigFile = writeConfig(t, dir, "receiver.yaml", "{}")
			c.Audit.WebhookOptions.BatchOptions.BatchConfig.BufferSize = 0
		}, "invalid audit batch webhook buffer size 0"},
		"tracing that is missing": {func(c *inproc.Config) { c.Tracing.ConfigFile = filepath.Join(dir, "none") },
			"--tracing-config-file: stat "},
		"tracing of two in one": {func(c *inproc.Config) {
			c.Tracing.ConfigFile = writeConfig(t, dir, "tracing.yaml", "apiVersion: apiserver.config.k8s.io/v1\n"+
				"kind: TracingConfiguration\nsamplingRatePerMillion: 2000000\n")
		}, "--tracing-config-file: "},
	} {
		t.Run(name, func(t *testing.T) {
			config := servertest.NewConfig(t, t.TempDir())
			row.change(config)
			refusesToStart(t, config, row.want)
		})
	}
}

// refusesToStart wants an error of one line that begins so.
func refusesToStart(t *testing.T, config *inproc.Config, want string) {
	t.Helper()
	handle, err := inproc.Start(t.Context(), config, zap.NewNop())
	if err == nil {
		_ = handle.Stop()
		t.Fatal("started")
	}
	if !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%q, want one line that begins with %q", err, want)
	}
}

func writeConfig(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fetch asks for the path, whatever the answer.
func fetch(t *testing.T, config *restclient.Config, path string, header http.Header) {
	t.Helper()
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		r.Header = header.Clone()
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}
