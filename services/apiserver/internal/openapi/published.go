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

// published are the documents: those of what is always served, and what the defined kinds add to them, as they are when
// somebody asks.
type published struct {
	paths   *mux.PathRecorderMux
	v2      *handler.OpenAPIService
	v3      *handler3.OpenAPIService
	always  *spec.Swagger
	served  map[string]bool // the versions that are always served, as "apis/apps/v1"
	defined Defined

	mu          sync.Mutex // guards what follows
	revision    uint64
	specs       specs
	definitions []*apiextensionsv1.CustomResourceDefinition
	versions    map[schema.GroupVersion][]*apiextensionsv1.CustomResourceDefinition
}

func newPublished(
	services []*restful.WebService, v2 *common.Config, v3 *common.OpenAPIV3Config, defined Defined,
) *published {
	p := &published{paths: mux.NewPathRecorderMux("openapi"), served: map[string]bool{}, defined: defined,
		specs: specs{}}
	container := restful.NewContainer()
	for _, service := range services {
		container.Add(service)
		p.served[strings.TrimPrefix(service.RootPath(), "/")] = true
	}
	p.v2, p.always = routes.OpenAPI{Config: v2}.InstallV2(container, p.paths)
	p.v3 = routes.OpenAPI{V3Config: v3}.InstallV3(container, p.paths)
	return p
}

// ServeHTTP implements http.Handler.
func (p *published) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.refresh()
	// The library answers a version that it does not know with nothing, and 200.
	if version, of := strings.CutPrefix(r.URL.Path, v3Path+"/"); of && !p.knows(version) {
		http.NotFound(w, r)
		return
	}
	p.paths.ServeHTTP(w, r)
}

// knows is asked for a version as "apis/apps/v1".
func (p *published) knows(version string) bool {
	if p.served[version] {
		return true
	}
	parts := strings.Split(version, "/")
	if len(parts) != 3 || parts[0] != "apis" {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.versions[schema.GroupVersion{Group: parts[1], Version: parts[2]}] != nil
}

// refresh brings the documents up to what is defined now. Each is made only when somebody reads it.
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
	p.v2.UpdateSpecLazy(p.specs.v2(p.always, definitions))
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
