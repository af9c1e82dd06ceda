package openapi

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Defined are the kinds of CustomResourceDefinitions, which come and go.
type Defined interface {
	// WebServices answer requests for the definitions themselves.
	WebServices() []*restful.WebService
	// Revision is another one after each change of the definitions.
	Revision() uint64
	Definitions() []*apiextensionsv1.CustomResourceDefinition
}

// Elsewhere are the kinds of servers from elsewhere, which come and go.
type Elsewhere interface {
	// URLs are where the documents of OpenAPI v3 are, by version.
	URLs(*http.Request) map[schema.GroupVersion]string
	// ServeV3 answers a request for the document of a version; false if that is not of one of the servers.
	ServeV3(http.ResponseWriter, *http.Request, schema.GroupVersion) bool
	// V2 are the documents of OpenAPI v2, each of one version. One that stays the same is the same pointer.
	V2(*http.Request) []*spec.Swagger
}

// published are the documents: those of what is always served, and what the defined kinds and those from elsewhere add
// to them at the time of the request.
type published struct {
	paths     *mux.PathRecorderMux
	v2        *handler.OpenAPIService
	v3        *handler3.OpenAPIService
	always    *spec.Swagger
	served    map[string]bool // the versions that are always served, as "apis/apps/v1"
	defined   Defined
	elsewhere Elsewhere

	mu          sync.Mutex // guards what follows
	revision    uint64
	specs       specs
	definitions []*apiextensionsv1.CustomResourceDefinition
	versions    map[schema.GroupVersion][]*apiextensionsv1.CustomResourceDefinition
	others      []*spec.Swagger
}

func newPublished(
	services []*restful.WebService, v2 *common.Config, v3 *common.OpenAPIV3Config, defined Defined, elsewhere Elsewhere,
) *published {
	p := &published{paths: mux.NewPathRecorderMux("openapi"), served: map[string]bool{}, defined: defined,
		elsewhere: elsewhere, specs: specs{}}
	container := restful.NewContainer()
	for _, service := range services {
		container.Add(service)
		p.served[strings.TrimPrefix(service.RootPath(), "/")] = true
	}
	p.v2, p.always = routes.OpenAPI{Config: v2}.InstallV2(container, p.paths)
	p.v3 = routes.OpenAPI{V3Config: described(v3)}.InstallV3(container, p.paths)
	return p
}

// ServeHTTP implements http.Handler.
func (p *published) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.refresh()
	switch r.URL.Path {
	case v2Path:
		p.add(p.elsewhere.V2(r))
	case v3Path:
		if urls := p.elsewhere.URLs(r); len(urls) > 0 {
			p.serveIndex(w, r, urls)
			return
		}
	default:
		if p.serveVersion(w, r, strings.TrimPrefix(r.URL.Path, v3Path+"/")) {
			return
		}
	}
	p.paths.ServeHTTP(w, r)
}

// serveVersion answers for versions, as "apis/apps/v1", that are elsewhere or nowhere; false if it is one of ours.
func (p *published) serveVersion(w http.ResponseWriter, r *http.Request, path string) bool {
	if p.served[path] {
		return false
	}
	parts := strings.Split(path, "/")
	if len(parts) == 3 && parts[0] == "apis" {
		version := schema.GroupVersion{Group: parts[1], Version: parts[2]}
		if p.elsewhere.ServeV3(w, r, version) {
			return true
		}
		if p.defines(version) {
			return false
		}
	}
	// The library answers a version that it does not know with nothing, and 200.
	http.NotFound(w, r)
	return true
}

func (p *published) defines(version schema.GroupVersion) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.versions[version] != nil
}

// refresh brings the documents up to what is defined now. Each is made only when it is read.
func (p *published) refresh() {
	p.mu.Lock()
	defer p.mu.Unlock()
	revision := p.defined.Revision()
	if revision == p.revision {
		return
	}
	p.revision = revision
	definitions := p.specs.keep(established(p.defined.Definitions()))
	if slices.Equal(p.definitions, definitions) {
		return
	}
	before := p.versions
	p.definitions, p.versions = definitions, byVersion(definitions)
	for version := range before {
		if p.versions[version] == nil && !p.served[pathOf(version)] {
			p.v3.DeleteGroupVersion(pathOf(version))
		}
	}
	for version, now := range p.versions {
		if !slices.Equal(before[version], now) && !p.served[pathOf(version)] {
			p.v3.UpdateGroupVersionLazy(pathOf(version), p.specs.v3(version, now))
		}
	}
	p.v2.UpdateSpecLazy(p.specs.v2(p.always, definitions, p.others))
}

// add brings the document of OpenAPI v2 up to what is said elsewhere.
func (p *published) add(others []*spec.Swagger) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Equal(p.others, others) {
		return
	}
	p.others = others
	p.v2.UpdateSpecLazy(p.specs.v2(p.always, p.definitions, others))
}

func pathOf(version schema.GroupVersion) string { return "apis/" + version.String() }

// established are the definitions whose objects are served, by their names.
func established(all []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	served := slices.DeleteFunc(slices.Clone(all), func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return !apihelpers.IsCRDConditionTrue(d, apiextensionsv1.Established)
	})
	slices.SortFunc(served, func(a, b *apiextensionsv1.CustomResourceDefinition) int {
		return strings.Compare(a.Name, b.Name)
	})
	return served
}

func byVersion(definitions []*apiextensionsv1.CustomResourceDefinition) map[schema.GroupVersion][]*apiextensionsv1.
	CustomResourceDefinition {
	versions := map[schema.GroupVersion][]*apiextensionsv1.CustomResourceDefinition{}
	for _, d := range definitions {
		for i := range d.Spec.Versions {
			if v := &d.Spec.Versions[i]; v.Served {
				of := schema.GroupVersion{Group: d.Spec.Group, Version: v.Name}
				versions[of] = append(versions[of], d)
			}
		}
	}
	return versions
}
