package openapi

import (
	"runtime"
	"testing"
	"weak"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"keelson.dev/services/apiserver/internal/scheme"
)

// A configuration stays for as long as the server runs. It holds neither the definitions that have been forgotten nor
// documents that have been built by it, each of which takes MiB.
func TestConfigurationsHoldNothingThatWasBuilt(t *testing.T) {
	s, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	v2, v3 := Configs(s)
	definition := weak.Make(mark(t, v3))
	Forget(v3)
	published := newPublished([]*restful.WebService{new(restful.WebService).Path("/apis/apps/v1")}, v2, v3, nil, nil)
	document := weak.Make(published.always)
	if document.Value() == nil {
		t.Error("there is no document")
	}
	runtime.KeepAlive(published)
	runtime.GC()
	if definition.Value() != nil {
		t.Error("the definitions are held")
	}
	if document.Value() != nil {
		t.Error("the document is held")
	}
	if len(v3.Definitions) != 0 {
		t.Errorf("%d definitions are held by the configuration", len(v3.Definitions))
	}
	runtime.KeepAlive(v2)
	runtime.KeepAlive(v3)
}

// mark adds a definition of which it returns a part, and has the library read all.
func mark(t *testing.T, v3 *common.OpenAPIV3Config) *spec.SchemaOrArray {
	t.Helper()
	if len(v3.Definitions) == 0 {
		t.Error("there are no definitions at first")
	}
	part := &spec.SchemaOrArray{Schema: &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"string"}}}}
	v3.Definitions["marked"] = common.OpenAPIDefinition{Schema: spec.Schema{SchemaProps: spec.SchemaProps{
		Type: []string{"array"}, Items: part}}}
	if _, err := builder3.BuildOpenAPIDefinitionsForResources(v3, "marked"); err != nil {
		t.Fatal(err)
	}
	return part
}
