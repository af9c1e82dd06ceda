package server

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"keelson.dev/services/apiserver/internal/authz/rbac"
)

// Every filter stands behind those whose work it reads, and what is named is there.
func TestFilterOrder(t *testing.T) {
	var seen []string
	for _, f := range filters {
		for _, before := range f.after {
			if !slices.Contains(seen, before) {
				t.Errorf("%s must come after %s", f.name, before)
			}
		}
		if slices.Contains(seen, f.name) {
			t.Errorf("%s stands twice", f.name)
		}
		seen = append(seen, f.name)
	}
}

// A switch is a flag that exists, and what nothing switches is on.
func TestFilterFlags(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	NewOptions().AddFlags(flags)
	for _, f := range filters {
		if f.flag != "" && (flags.Lookup(f.flag) == nil || f.on == nil) {
			t.Errorf("%s: --%s does not switch it", f.name, f.flag)
		}
	}
}

func TestSwitches(t *testing.T) {
	always := []string{"audit-init", "panic-recovery", "received-timestamp", "request-info", "joined-flushes",
		"cache-control", "watch-termination", "wait-group", "deadline", "timeout", "stack", "warnings",
		"authentication", "impersonation", "answer-form", "authorization", "recent-writes", "large-work",
		"request-body", "carried-fields"}
	rows := map[string]struct {
		change func(*Options, *genericapiserver.Config)
		also   []string
	}{
		"by default": {func(*Options, *genericapiserver.Config) {},
			[]string{"client-share", "in-flight-limit", "long-running-limit"}},
		"audit": {func(o *Options, _ *genericapiserver.Config) { o.Audit.PolicyFile = "policy.yaml" },
			[]string{"audit", "client-share", "in-flight-limit", "long-running-limit"}},
		"goaway": {func(o *Options, _ *genericapiserver.Config) { o.GoawayChance = 0.01 },
			[]string{"goaway", "client-share", "in-flight-limit", "long-running-limit"}},
		"tracing": {func(o *Options, _ *genericapiserver.Config) { o.Tracing.ConfigFile = "tracing.yaml" },
			[]string{"tracing", "client-share", "in-flight-limit", "long-running-limit"}},
		"priority and fairness": {func(_ *Options, c *genericapiserver.Config) { c.FlowControl = flowControl() },
			[]string{"client-share", "priority-and-fairness", "long-running-limit"}},
		"no limit of what lasts": {func(o *Options, _ *genericapiserver.Config) { o.MaxLongRunningPerClient = 0 },
			[]string{"client-share", "in-flight-limit"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			options, config := NewOptions(), &genericapiserver.Config{}
			row.change(options, config)
			var got []string
			for _, f := range options.filters(config) {
				got = append(got, f.name)
			}
			want := slices.Sorted(slices.Values(append(slices.Clone(always), row.also...)))
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// The first filter of the list is the first to meet a request.
func TestWrap(t *testing.T) {
	var met []string
	in := func(name string) filter {
		return filter{wrap: func(h http.Handler, _ *Options, _ *genericapiserver.Config) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				met = append(met, name)
				h.ServeHTTP(w, r)
			})
		}}
	}
	end := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { met = append(met, "handler") })
	NewOptions().wrap(end, []filter{in("first"), in("second")}, nil).ServeHTTP(nil, nil)
	if want := []string{"first", "second", "handler"}; !slices.Equal(met, want) {
		t.Errorf("met %v, want %v", met, want)
	}
}

// Where FlowSchemas are served, a request is answered under one of them.
func TestPriorityAndFairness(t *testing.T) {
	options, config := chainConfig(t)
	config.FlowControl = flowControl()
	go func() { _ = config.FlowControl.Run(t.Context().Done()) }()
	handler := options.chain(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusOK)
	}),
		config)
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request())
	// Its UID is empty, as that of a FlowSchema that is not stored.
	flow := response.Header()[http.CanonicalHeaderKey(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)]
	if response.Code != http.StatusOK || len(flow) != 1 {
		t.Errorf("status %d under the FlowSchema %q", response.Code, flow)
	}
}

// flowControl knows the two FlowSchemas that need not be stored.
func flowControl() utilflowcontrol.Interface {
	client := fake.NewClientset()
	return utilflowcontrol.New(informers.NewSharedInformerFactory(client, time.Hour), client.FlowcontrolV1(), 100)
}

// chainConfig is the configuration of a server as far as the handler chain reads it: a user known by its token who may
// read and update ConfigMaps.
func chainConfig(t testing.TB) (*Options, *genericapiserver.Config) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options := NewOptions()
	options.TokenAuthFile = filepath.Join(t.TempDir(), "tokens.csv")
	writeFile(t, options.TokenAuthFile, "secret,ann,1\n")
	// The listener is hidden, so that nothing is served on it.
	s := &Server{options: options, log: zap.NewNop(), listener: struct{ net.Listener }{listener}}
	t.Cleanup(s.Close)
	for _, step := range []func(context.Context) error{s.openScheme, s.openServing, s.openAuth} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	name := rbac.Name{Name: "readers"}
	s.policy.SetRole(name, []rbacv1.PolicyRule{{Verbs: []string{"get", "update"}, APIGroups: []string{""},
		Resources: []string{"configmaps"}}})
	s.policy.SetBinding(name, rbacv1.RoleRef{Kind: "ClusterRole", Name: name.Name},
		[]rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "ann"}})
	s.authority.PolicyIsComplete()
	s.config.Complete(nil)
	return options, s.config
}

// request asks for a ConfigMap.
func request() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/default/configmaps/c", nil)
	r.Header.Set("Authorization", "Bearer secret")
	return r
}

// The configuration of these tests lets requests through as who they are.
func TestChain(t *testing.T) {
	options, config := chainConfig(t)
	var who user.Info
	var info *genericapirequest.RequestInfo
	handler := options.chain(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		who, _ = genericapirequest.UserFrom(r.Context())
		info, _ = genericapirequest.RequestInfoFrom(r.Context())
	}), config)
	handler.ServeHTTP(httptest.NewRecorder(), request())
	if who == nil || who.GetName() != "ann" || info == nil || info.Resource != "configmaps" || info.Name != "c" {
		t.Errorf("%v asks for %+v", who, info)
	}
	unknown := request()
	unknown.Header.Set("Authorization", "Bearer guessed")
	response := httptest.NewRecorder()
	if handler.ServeHTTP(response, unknown); response.Code != http.StatusUnauthorized {
		t.Errorf("a token that nobody gave out: status %d, want 401", response.Code)
	}
}
