package openapi

import (
	"fmt"
	"maps"

	extensions "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/runtime"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const title = "Keelson"

// Configs returns what publishes the definitions of the schemes' types as OpenAPI v2 and v3.
func Configs(schemes ...*runtime.Scheme) (*common.Config, *common.OpenAPIV3Config) {
	namer := apiopenapi.NewDefinitionNamer(schemes...)
	v2 := genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	v2.Info.Title = title
	v3 := genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	v3.Info.Title = title
	v2.GetOperationIDAndTagsFromRoute, v3.GetOperationIDAndTagsFromRoute = operation, operation
	return v2, v3
}

// operation names what a route does. Without it the library puts a function of its own into a configuration, which
// holds the first document that is built by it, and all definitions, for as long as the configuration is there.
func operation(r common.Route) (id string, tags []string, err error) {
	adapter, ok := r.(*restfuladapter.RouteAdapter)
	if !ok {
		return "", nil, fmt.Errorf("a route is a %T, want one of go-restful", r)
	}
	return apiopenapi.GetOperationIDAndTags(adapter.Route)
}

// Forget lets go of the definitions that v3 holds, which take 3 MiB. Who needs them later has them made again.
func Forget(v3 *common.OpenAPIV3Config) { v3.Definitions = nil }

// described is v3 with all definitions. Without them the library makes all again for each version of a group.
func described(v3 *common.OpenAPIV3Config) *common.OpenAPIV3Config {
	with := *v3
	with.Definitions = v3.GetDefinitions(func(name string) spec.Ref {
		defined, _ := v3.GetDefinitionName(name)
		return spec.MustCreateRef("#/components/schemas/" + common.EscapeJsonPointer(defined))
	})
	return &with
}

// definitions are those of all types: what the library has for CustomResourceDefinitions, and ours.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := extensions.GetOpenAPIDefinitions(ref)
	maps.Copy(all, GetOpenAPIDefinitions(ref))
	return all
}
