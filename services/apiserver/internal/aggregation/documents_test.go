package aggregation

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	discoveryendpoint "k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"keelson.dev/services/apiserver/internal/frontproxy"
	"keelson.dev/services/apiserver/internal/scheme"
)

// pipes are a listener to which one connects without a network, so that a test has its own clock.
type pipes struct {
	conns chan net.Conn
	close func()
}

func newPipes() pipes {
	conns := make(chan net.Conn)
	return pipes{conns, sync.OnceFunc(func() { close(conns) })}
}

func (p pipes) Accept() (net.Conn, error) {
	if conn, open := <-p.conns; open {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error {
	p.close()
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// elsewhere are servers, by the name of the Service.
type elsewhere struct {
	*Aggregator
	servers map[string]*httptest.Server
	pipes   map[string]pipes
	log     *observer.ObservedLogs
}

func newElsewhere(t *testing.T) *elsewhere {
	t.Helper()
	known, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	core, log := observer.New(zap.InfoLevel)
	e := &elsewhere{servers: map[string]*httptest.Server{}, pipes: map[string]pipes{}, log: log}
	e.Aggregator = New(Config{Objects: e, Dial: e.dial, Groups: noGroups{}, Identity: &frontproxy.Identity{},
		Resources: discoveryendpoint.NewResourceManager("apis"), Serializer: scheme.Codecs(known), Log: zap.New(core)})
	return e
}

// add makes a server of the group NAME.example.com that answers.
func (e *elsewhere) add(name string, handler http.HandlerFunc) *extension {
	e.pipes[name] = newPipes()
	server := &httptest.Server{Listener: e.pipes[name], Config: &http.Server{Handler: handler}}
	server.StartTLS()
	e.servers[name] = server
	service := &apiregistration.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1." + name + ".example.com", UID: types.UID(name)},
		Spec: apiregistration.APIServiceSpec{Group: name + ".example.com", Version: "v1", InsecureSkipTLSVerify: true,
			Service: &apiregistration.ServiceReference{Namespace: "default", Name: name}},
	}
	e.Set(service)
	added := e.find(service.Name)
	e.answered(added, nil, nil)
	return added
}

// close ends everything. The bubble of the test then has no goroutine, or the test fails.
func (e *elsewhere) close() {
	e.Close()
	for _, extension := range e.extensions {
		extension.close()
	}
	for _, server := range e.servers {
		server.CloseClientConnections()
		server.Close()
	}
}

func (e *elsewhere) dial(_ context.Context, _, address string) (net.Conn, error) {
	name, _, _ := strings.Cut(address, ".")
	here, there := net.Pipe()
	e.pipes[name].conns <- there
	return here, nil
}

// Service implements Objects.
func (e *elsewhere) Service(_ context.Context, _, name string) (*corev1.Service, error) {
	return &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName,
		ExternalName: name + ".example.com"}}, nil
}

// Slices implements Objects.
func (e *elsewhere) Slices(context.Context, string, string) ([]discoveryv1.EndpointSlice, error) {
	return nil, nil
}

type noGroups struct{ discovery.GroupManager }

func (noGroups) AddGroup(metav1.APIGroup) {}
func (noGroups) RemoveGroup(string)       {}

// index answers with an index that has the hash.
func index(name, hash string) string {
	return fmt.Sprintf(`{"paths":{"apis/%s.example.com/v1":{"serverRelativeURL":`+
		`"/openapi/v3/apis/%[1]s.example.com/v1?hash=%[2]s"},"apis/apps/v1":{"serverRelativeURL":"/x?hash=evil"}}}`,
		name, hash)
}

func request(path string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	return r.WithContext(genericapirequest.WithUser(r.Context(), &user.DefaultInfo{Name: "ann"}))
}

func versionOf(name string) schema.GroupVersion {
	return schema.GroupVersion{Group: name + ".example.com", Version: "v1"}
}

// Without a request no server is asked. An answer is fresh for ten seconds, a server that goes is no longer listed, and
// one that comes back is asked again.
func TestDocumentsAreReadOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t)
		defer e.close()
		var asked, unchanged atomic.Int32
		var hash atomic.Value
		hash.Store("one")
		of := e.add("good", func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			etag := `"` + hash.Load().(string) + `"`
			w.Header().Set("Etag", etag)
			if r.Header.Get("If-None-Match") == etag {
				unchanged.Add(1)
				w.WriteHeader(http.StatusNotModified)
				return
			}
			_, _ = io.WriteString(w, index("good", hash.Load().(string)))
		})
		documents := e.Documents()
		time.Sleep(time.Hour)
		if asked.Load() != 0 {
			t.Error("the server was asked while nobody wanted to know")
		}
		for _, row := range []struct {
			name             string
			change           func()
			pause            time.Duration
			url              string
			asked, unchanged int32
		}{
			{"first", nil, 0, "one", 1, 0},
			{"fresh", nil, freshFor - time.Millisecond, "one", 1, 0},
			{"no longer", nil, time.Millisecond, "one", 2, 1},
			{"changed", func() { hash.Store("two") }, freshFor, "two", 3, 1},
			{"gone", func() { e.answered(of, nil, io.EOF) }, time.Hour, "", 3, 1},
			{"back", func() { e.answered(of, nil, nil) }, 0, "two", 4, 1},
			{"gone and back meanwhile", func() {
				e.answered(of, nil, io.EOF)
				e.answered(of, nil, nil)
			}, 0, "two", 5, 1},
			{"answering still", func() { e.answered(of, nil, nil) }, 0, "two", 5, 1},
			{"deleted", func() {
				e.Delete(&apiregistration.APIService{ObjectMeta: metav1.ObjectMeta{Name: of.name, UID: of.uid}})
			}, time.Hour, "", 5, 1},
		} {
			if row.change != nil {
				row.change()
			}
			time.Sleep(row.pause)
			urls := documents.URLs(request(rootV3))
			want := ""
			if row.url != "" {
				want = "/openapi/v3/apis/good.example.com/v1?hash=" + row.url
			}
			if urls[versionOf("good")] != want || (want == "") != (len(urls) == 0) {
				t.Errorf("%s: %v, want %q", row.name, urls, want)
			}
			if asked.Load() != row.asked || unchanged.Load() != row.unchanged {
				t.Errorf("%s: asked %d times, %d unchanged; want %d and %d", row.name, asked.Load(), unchanged.Load(),
					row.asked, row.unchanged)
			}
		}
	})
}

// hostile are servers that do not say what they have.
var hostile = map[string]http.HandlerFunc{
	"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	"trickles": func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(100 * time.Millisecond)
		}
	},
	"garbage": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
	"array":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "[]") },
	"endless": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat(" ", 10<<20)) },
	"redirects": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://elsewhere.example.com/", http.StatusFound)
	},
	"moves": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"?hash=other", http.StatusMovedPermanently)
	},
	"fails":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
	"unchanged": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) },
	"breaks":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"lies": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf")
		_, _ = io.WriteString(w, `"openapi":"3.0.0"`)
	},
}

// A server that does not say what it has costs who asks for the index a moment at most, and nothing else: all others'
// documents are there, one line is logged, and what was started ends.
func TestHostileServers(t *testing.T) {
	for name, handler := range hostile {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testHostileServer(t, name, handler) })
		})
	}
}

func testHostileServer(t *testing.T, name string, handler http.HandlerFunc) {
	t.Helper()
	e := newElsewhere(t)
	defer e.close()
	var asked atomic.Int32
	e.add("bad", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		handler(w, r)
	})
	e.add("good", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == rootV2 {
			_, _ = io.WriteString(w, flunderV2("good.example.com"))
			return
		}
		_, _ = io.WriteString(w, index("good", "h"))
	})
	documents := e.Documents()
	for i := range 3 {
		began := time.Now()
		urls := documents.URLs(request(rootV3))
		if len(urls) != 1 || urls[versionOf("good")] == "" {
			t.Errorf("the index, %d: %v", i, urls)
		}
		if v2 := documents.V2(request(rootV2)); len(v2) != 1 {
			t.Errorf("v2, %d: %d documents", i, len(v2))
		}
		if took := time.Since(began); took > 2*patience {
			t.Errorf("the documents of all took %v", took)
		}
		if i == 0 {
			// Soon afterwards nothing runs, and nothing is asked again.
			time.Sleep(2 * checkTimeout)
			before := asked.Load()
			documents.URLs(request(rootV3))
			if asked.Load() != before || before != 2 {
				t.Errorf("%s was asked %d times, then %d", name, before, asked.Load())
			}
		}
		time.Sleep(failedFor)
	}
	if lines := e.log.FilterField(zap.String("path", rootV3)).All(); len(lines) != 1 {
		t.Errorf("%d lines are logged: %v", len(lines), lines)
	}
	began, w := time.Now(), httptest.NewRecorder()
	r := request(rootV3 + "/apis/bad.example.com/v1?hash=h")
	if served := documents.ServeV3(w, r, versionOf("bad")); !served || w.Code != http.StatusServiceUnavailable ||
		!strings.Contains(w.Body.String(), "reading the OpenAPI document of the APIService v1.bad.example.com: ") {
		t.Errorf("the document: %v, %d %s", served, w.Code, w.Body)
	}
	if took := time.Since(began); took > checkTimeout+patience {
		t.Errorf("the document took %v", took)
	}
}

const document = `{"openapi":"3.0.0","info":{"title":"t","version":"v1"},"paths":{}}`

// A request for a document is handed on with its hash, in the name of who asks, and one with an old hash is led to the
// new one.
func TestServeV3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t)
		defer e.close()
		var hash atomic.Value
		hash.Store("one")
		e.add("good", func(w http.ResponseWriter, r *http.Request) {
			now := hash.Load().(string)
			switch asked := r.URL.Query().Get("hash"); {
			case r.URL.Path == rootV3:
				_, _ = io.WriteString(w, index("good", now))
			case asked != "" && asked != now:
				http.Redirect(w, r, "https://elsewhere.example.com/?hash="+now, http.StatusMovedPermanently)
			case r.Header.Get("If-None-Match") == now:
				w.WriteHeader(http.StatusNotModified)
			case r.Header.Get("Accept") == "text/plain":
				w.WriteHeader(http.StatusNotAcceptable)
			default:
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Cache-Control", "public, immutable")
				w.Header().Set("Set-Cookie", "a=b")
				w.Header().Set("Etag", now)
				w.Header().Set("X-Who", r.Header.Get("X-Remote-User"))
				if r.Header.Get("X-Remote-User") != "ann" || len(r.Header["Authorization"]) > 0 {
					w.WriteHeader(http.StatusForbidden)
				}
				_, _ = io.WriteString(w, document)
			}
		})
		documents := e.Documents()
		const path = rootV3 + "/apis/good.example.com/v1"
		for _, row := range []struct {
			name, query, header, value string
			code                       int
			location                   string
		}{
			{"plain", "", "", "", 200, ""},
			{"by its hash", "?hash=one", "", "", 200, ""},
			{"known", "", "If-None-Match", "one", 304, ""},
			{"another one known", "", "If-None-Match", "zero", 200, ""},
			{"another form", "", "Accept", "text/plain", 406, ""},
			{"by an old hash", "?hash=zero", "", "", 302, path + "?hash=one"},
			{"somebody else's name", "", "X-Remote-User", "eve", 200, ""},
			{"with credentials", "", "Authorization", "Bearer t", 200, ""},
			{"handed on already", "", "Via", via, 508, ""},
		} {
			r, w := request(path+row.query), httptest.NewRecorder()
			if row.header != "" {
				r.Header.Set(row.header, row.value)
			}
			if !documents.ServeV3(w, r, versionOf("good")) || w.Code != row.code ||
				w.Header().Get("Location") != row.location {
				t.Errorf("%s: %d %v %s", row.name, w.Code, w.Header(), w.Body)
			}
			if w.Code == 200 && (w.Body.String() != document || w.Header().Get("Etag") != "one" ||
				w.Header().Get("Cache-Control") == "" || w.Header().Get("Set-Cookie") != "") {
				t.Errorf("%s: %v %s", row.name, w.Header(), w.Body)
			}
		}
		// The index that is still fresh has the old hash.
		hash.Store("two")
		w := httptest.NewRecorder()
		documents.ServeV3(w, request(path+"?hash=one"), versionOf("good"))
		if w.Code != http.StatusFound || w.Header().Get("Location") != path+"?hash=two" {
			t.Errorf("a hash that was told: %d %v", w.Code, w.Header())
		}
		if documents.ServeV3(httptest.NewRecorder(), request(path), versionOf("other")) {
			t.Error("a version of nobody was answered")
		}
		// A client that sends what apiservers send gets the documents of all, and no server is asked for it.
		handedOn := request(rootV3)
		handedOn.Header.Set("Via", via)
		if urls := documents.URLs(handedOn); len(urls) != 1 {
			t.Errorf("a request that comes back is told of %v", urls)
		}
		if urls := e.Documents().URLs(handedOn); len(urls) != 0 {
			t.Errorf("for a request that comes back servers were asked: %v", urls)
		}
	})
}
