package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
)

// TestDocumentsAreTheLibrarys: a document that is built on request is to the last byte what the library builds at every
// start, so replicas and restarts have one hash.
func TestDocumentsAreTheLibrarys(t *testing.T) {
	s := start(t, delegates{})
	wait(t, s, func(status int, _ string) bool { return status == http.StatusOK })
	if n := len(s.config.OpenAPIV3Config.Definitions); n > 0 {
		t.Errorf("%d definitions are kept that nobody has asked for", n)
	}
	library, services := mux.NewPathRecorderMux("library"), restful.NewContainer()
	for _, service := range append(s.core.Handler.GoRestfulContainer.RegisteredWebServices(),
		s.extensions.WebServices()...) {
		services.Add(service)
	}
	routes.OpenAPI{Config: s.config.OpenAPIConfig}.InstallV2(services, library)
	routes.OpenAPI{V3Config: s.config.OpenAPIV3Config}.InstallV3(services, library)
	for _, path := range []string{"/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"} {
		w := httptest.NewRecorder()
		library.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		status, got := ask(t, s, path)
		if want := w.Body.String(); status != http.StatusOK || got != want || len(want) < 1000 {
			t.Errorf("%s: %d with %d bytes, the library has %d", path, status, len(got), len(want))
		}
	}
}
