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
// those that documents have been built of: each time that they are made they take MiB.
func TestConfigurationsHoldNothingThatWasBuilt(t *testing.T) {
	s, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	v2, v3 := Configs(s)
	if len(v3.Definitions) == 0 {
		t.Error("there are no definitions to make the types of managed fields of")
	}
	var made []weak.Pointer[spec.SchemaOrArray]
	marked := func(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		part := &spec.SchemaOrArray{Schema: &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"string"}}}}
		made = append(made, weak.Make(part))
		return map[string]common.OpenAPIDefinition{"marked": {Schema: spec.Schema{SchemaProps: spec.SchemaProps{
			Type: []string{"array"}, Items: part}}}}
	}
	v2.GetDefinitions, v3.GetDefinitions, v3.Definitions = marked, marked, marked(nil)
	if _, err := builder3.BuildOpenAPIDefinitionsForResources(v3, "marked"); err != nil {
		t.Fatal(err)
	}
	Forget(v3)
	services := []*restful.WebService{new(restful.WebService).Path("/apis/apps/v1"),
		new(restful.WebService).Path("/apis/batch/v1")}
	newPublished(services, v2, v3, nil, nil)
	if len(made) != 3 {
		t.Errorf("definitions are made %d times, want 3: at first, and for the documents of v2 and of v3", len(made))
	}
	runtime.GC()
	for i, part := range made {
		if part.Value() != nil {
			t.Errorf("the definitions that were made at time %d are held", i)
		}
	}
	runtime.KeepAlive(v2)
	runtime.KeepAlive(v3)
}
