package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/internal/openapi"
)

// start runs a server with the delegates until the test ends.
func start(t *testing.T, d delegates) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options := NewOptions()
	options.Listener, options.DataDir, options.delegates = listener, filepath.Join(t.TempDir(), "data"), d
	s, err := New(t.Context(), options, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("running: %v", err)
		}
	})
	return s
}

// ask returns the answer to a request with all rights.
func ask(t *testing.T, s *Server, path string, accept ...string) (status int, body string) {
	t.Helper()
	status, body, err := try(t, s, path, accept...)
	if err != nil {
		t.Fatal(err)
	}
	return status, body
}

// try is ask for a server that may not answer yet: it listens before it has the certificate that its own client
// expects.
func try(t *testing.T, s *Server, path string, accept ...string) (status int, body string, err error) {
	t.Helper()
	client, err := restclient.HTTPClientFor(s.LoopbackConfig())
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.LoopbackConfig().Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header["Accept"] = accept
	response, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	return response.StatusCode, string(read), err
}

// wait asks for the readiness until it is as wanted.
func wait(t *testing.T, s *Server, until func(status int, body string) bool) {
	t.Helper()
	var last string
	err := utilwait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			status, body, err := try(t, s, "/readyz?verbose")
			last = fmt.Sprint(body, err)
			return err == nil && until(status, body), nil
		})
	if err != nil {
		t.Fatalf("readiness: %s", last)
	}
}

// things is a read-only resource with one object.
type things struct{}

func (things) New() runtime.Object     { return &corev1.ConfigMap{} }
func (things) Destroy()                {}
func (things) NamespaceScoped() bool   { return false }
func (things) GetSingularName() string { return "thing" }
func (things) Kind() string            { return "ConfigMap" }
func (things) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
}

// delegate is a server of its own path and its own group version, which tells of its hook and its readiness.
type delegate struct {
	hooked   chan struct{}
	mayServe chan struct{}
}

func (d *delegate) build(
	config *genericapiserver.Config, next genericapiserver.DelegationTarget,
) (link, error) {
	types := runtime.NewScheme()
	version := schema.GroupVersion{Group: "test.keelson.dev", Version: "v1"}
	types.AddKnownTypes(version, &corev1.ConfigMap{})
	types.AddKnownTypes(schema.GroupVersion{Group: version.Group, Version: runtime.APIVersionInternal},
		&corev1.ConfigMap{})
	metav1.AddToGroupVersion(types, version)
	metav1.AddToGroupVersion(types, schema.GroupVersion{Version: "v1"})
	config.OpenAPIConfig, config.OpenAPIV3Config = openapi.Configs(types)
	config.SkipOpenAPIInstallation = true
	config.MergedResourceConfig = serverstorage.NewResourceConfig()
	config.MergedResourceConfig.EnableVersions(version)
	server, err := config.Complete(nil).New("delegate", next)
	if err != nil {
		return link{}, err
	}
	info := genericapiserver.NewDefaultAPIGroupInfo(version.Group, types, runtime.NewParameterCodec(types),
		serializer.NewCodecFactory(types))
	info.VersionedResourcesStorageMap[version.Version] = map[string]genericrest.Storage{"things": things{}}
	if err := server.InstallAPIGroup(&info); err != nil {
		return link{}, err
	}
	server.Handler.NonGoRestfulMux.HandleFunc("/delegate", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "the delegate")
	})
	err = server.AddPostStartHook("delegate", func(genericapiserver.PostStartHookContext) error {
		close(d.hooked)
		return nil
	})
	return link{server: server, ready: []healthz.HealthChecker{healthz.NamedCheck("delegate",
		func(*http.Request) error {
			select {
			case <-d.mayServe:
				return nil
			default:
				return errors.New("not yet")
			}
		})}}, err
}

func newDelegate() *delegate {
	return &delegate{hooked: make(chan struct{}), mayServe: make(chan struct{})}
}

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// TestDelegates: whether a delegate stands before the core or behind it, each gets what is its own, all become ready
// together, and what the core says of itself stays the same.
func TestDelegates(t *testing.T) {
	alone := start(t, delegates{})
	wait(t, alone, func(status int, _ string) bool { return status == http.StatusOK })
	for name, place := range map[string]func(*delegates, build){
		"before": func(d *delegates, b build) { d.before = b },
		"behind": func(d *delegates, b build) { d.behind = b },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDelegate()
			var chain delegates
			place(&chain, d.build)
			s := start(t, chain)
			wait(t, s, func(_ int, body string) bool {
				return strings.Contains(body, "[-]delegate failed") && strings.Contains(body, "[+]bootstrap ok") &&
					strings.Contains(body, "[+]poststarthook/delegate ok")
			})
			<-d.hooked
			close(d.mayServe)
			wait(t, s, func(status int, _ string) bool { return status == http.StatusOK })
			wantDelegated(t, s)
			for _, path := range []string{"/api", "/api/v1", "/apis/apps/v1"} {
				_, want := ask(t, alone, path)
				if status, got := ask(t, s, path); status != http.StatusOK || plain(got) != plain(want) {
					t.Errorf("%s: %d %s, want %s", path, status, got, want)
				}
			}
			if name == "behind" {
				wantSameDocuments(t, alone, s)
			}
			if status, _ := ask(t, s, "/nobody/knows"); status != http.StatusNotFound {
				t.Errorf("a path that nobody knows: %d", status)
			}
		})
	}
}

// wantDelegated asks for what only the delegate has, and for what only the core has.
func wantDelegated(t *testing.T, s *Server) {
	t.Helper()
	for path, want := range map[string]string{
		"/delegate":                          "the delegate",
		"/apis/test.keelson.dev/v1/things/x": `"name":"x"`,
		"/apis/test.keelson.dev/v1":          `"name":"things"`,
		"/api/v1/namespaces/default":         `"name":"default"`,
	} {
		if status, body := ask(t, s, path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %s", path, status, body, want)
		}
	}
	if groups := discovered(t, s); !slices.Contains(groups, "test.keelson.dev") || !slices.Contains(groups, "apps") {
		t.Errorf("discovered are %v", groups)
	}
}

// wantSameDocuments: OpenAPI and the groups of the core do not change with what stands behind it.
func wantSameDocuments(t *testing.T, alone, s *Server) {
	t.Helper()
	for _, path := range []string{"/openapi/v2", "/openapi/v3/apis/apps/v1", "/apis"} {
		_, want := ask(t, alone, path)
		if status, got := ask(t, s, path); status != http.StatusOK || plain(got) != plain(want) {
			t.Errorf("%s is not what it is without a delegate: %d, %d bytes for %d", path, status, len(got), len(want))
		}
	}
	with := slices.DeleteFunc(discovered(t, s), func(g string) bool { return g == "test.keelson.dev" })
	if without := discovered(t, alone); !slices.Equal(with, without) {
		t.Errorf("discovered are %v, without the delegate %v", with, without)
	}
}

func discovered(t *testing.T, s *Server) []string {
	t.Helper()
	_, body := ask(t, s, "/apis", aggregated)
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	var groups []string
	for _, group := range list.Items {
		groups = append(groups, group.Name)
	}
	return groups
}

// plain is a document without the server's own address.
func plain(document string) string {
	var lines []string
	for _, line := range strings.Split(document, ",") {
		if !strings.Contains(line, "127.0.0.1:") && !strings.Contains(line, "serverAddress") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, ",")
}

// A delegate that cannot be built ends the start with its reason, and what stands behind it is given up.
func TestDelegateFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reason, destroyed := errors.New("no room"), false
	options := NewOptions()
	options.Listener, options.DataDir = listener, filepath.Join(t.TempDir(), "data")
	options.delegates.behind = func(c *genericapiserver.Config, n genericapiserver.DelegationTarget) (link,
		error) {
		built, err := newDelegate().build(c, n)
		if err == nil {
			built.server.RegisterDestroyFunc(func() { destroyed = true })
		}
		return built, err
	}
	options.delegates.before = func(*genericapiserver.Config, genericapiserver.DelegationTarget) (link, error) {
		return link{}, reason
	}
	if _, err := New(t.Context(), options, zap.NewNop()); !errors.Is(err, reason) || !destroyed {
		t.Errorf("%v, what stood behind was given up: %v", err, destroyed)
	}
}

// What comes first may have a way of its own to serve: it runs the whole.
func TestFirstRuns(t *testing.T) {
	ran := make(chan struct{})
	s := start(t, delegates{before: func(c *genericapiserver.Config, n genericapiserver.DelegationTarget) (link,
		error) {
		server, err := c.Complete(nil).New("first", n)
		return link{server: server, run: func(ctx context.Context) error {
			close(ran)
			return server.PrepareRun().RunWithContext(ctx)
		}}, err
	}})
	<-ran
	wait(t, s, func(status int, _ string) bool { return status == http.StatusOK })
}
