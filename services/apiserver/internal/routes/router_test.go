package routes

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

var resolver = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api")}

// services are routes of all forms that an apiserver has.
func services() []*restful.WebService {
	var all []*restful.WebService
	for _, root := range []string{"/api/v1", "/apis/apps/v1", "/apis/apps/v2"} {
		ws := (&restful.WebService{}).Path(root).Consumes("*/*").Produces("application/json", "application/yaml")
		add := func(path string, methods ...string) {
			for _, method := range methods {
				to := func(*restful.Request, *restful.Response) {}
				b := ws.Method(method).Path(path).To(to)
				if method == http.MethodPatch {
					b.Consumes("application/merge-patch+json", "application/json-patch+json")
				}
				ws.Route(b)
			}
		}
		for _, resource := range []string{"namespaces", "nodes", "namespaces/{namespace}/pods",
			"namespaces/{namespace}/proxies"} {
			add("/"+resource, "GET", "POST", "DELETE")
			add("/"+resource+"/{name}", "GET", "PUT", "PATCH", "DELETE")
			add("/"+resource+"/{name}/status", "GET", "PUT", "PATCH")
			add("/"+resource+"/{name}/binding", "POST")
			add("/"+resource+"/{name}/proxy", "GET", "POST")
			add("/"+resource+"/{name}/proxy/{path:*}", "GET", "POST")
			add("/watch/"+resource, "GET")
			add("/watch/"+resource+"/{name}", "GET")
		}
		add("/pods", "GET")
		add("/watch/pods", "GET")
		add("/", "GET")
		all = append(all, ws)
	}
	return all
}

func random(rnd *rand.Rand) *http.Request {
	words := []string{"namespaces", "pods", "nodes", "status", "binding", "proxy", "watch", "proxies", "a", "b", "",
		"finalize"}
	one := func(of ...string) string { return of[rnd.IntN(len(of))] }
	path := one("/api/v1", "/apis/apps/v1", "/apis/apps/v2", "/apis/apps", "/api")
	for range rnd.IntN(7) {
		path += "/" + words[rnd.IntN(len(words))]
	}
	method := one("GET", "POST", "PUT", "PATCH", "DELETE")
	r := httptest.NewRequest(method, "/", strings.NewReader("{}"))
	r.URL.Path = path
	for name, value := range map[string]string{
		"Accept":       one("", "*/*", "application/json", "application/yaml", "text/html"),
		"Content-Type": one("", "application/json", "application/merge-patch+json", "text/html"),
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	info, err := resolver.NewRequestInfo(r)
	if err != nil {
		return random(rnd)
	}
	return r.WithContext(request.WithRequestInfo(r.Context(), info))
}

func chosen(service *restful.WebService, route *restful.Route, err error) string {
	of := ""
	if service != nil {
		of = service.RootPath()
	}
	if route != nil {
		return fmt.Sprint(of, " ", route.Method, " ", route.Path, " ", err)
	}
	return fmt.Sprint(of, " ", err)
}

// Whatever has come before, a request takes the route that the library finds.
func TestSameRoutes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	all, router, library := services(), New(), restful.CurlyRouter{}
	found := 0
	for range 50_000 {
		r := random(rnd)
		got, want := chosen(router.SelectRoute(all, r)), chosen(library.SelectRoute(all, r))
		if got != want {
			t.Fatalf("%s %s of %q, accepting %q, takes %s, want %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"),
				r.Header.Get("Accept"), got, want)
		}
		if strings.HasSuffix(want, "<nil>") {
			found++
		}
	}
	if found < 1000 || len(router.known) < 200 {
		t.Errorf("%d had a route, %d are known", found, len(router.known))
	}
}

// What is remembered has an end, and ends when there are other routes.
func TestBounds(t *testing.T) {
	all, router := services(), New()
	ask := func(services []*restful.WebService, accept string) string {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/nodes/n", nil)
		r.Header.Set("Accept", accept)
		info, err := resolver.NewRequestInfo(r)
		if err != nil {
			t.Fatal(err)
		}
		return chosen(router.SelectRoute(services, r.WithContext(request.WithRequestInfo(r.Context(), info))))
	}
	for i := range 5000 {
		if got := ask(all, fmt.Sprint("*/*;q=", i)); !strings.Contains(got, "/nodes/{name}") {
			t.Fatal(got)
		}
	}
	if len(router.known) != 4096 {
		t.Errorf("%d are known, want 4096", len(router.known))
	}
	router = New()
	for length, known := range map[int]int{256: 1, 257: 0} {
		clear(router.known)
		if ask(all, "*/*;"+strings.Repeat("x", length-4)); len(router.known) != known {
			t.Errorf("a header of %d: %d are known, want %d", length, len(router.known), known)
		}
	}
	ask(all, "*/*")
	if got := ask(all[1:], "*/*"); strings.Contains(got, "/nodes") {
		t.Errorf("behind a service that is gone: %s", got)
	}
}
