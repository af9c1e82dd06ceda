package openapi

import (
	"maps"

	extensions "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/runtime"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"
)

const title = "Keelson"

// Configs returns what publishes the definitions of the schemes' types as OpenAPI v2 and v3.
func Configs(schemes ...*runtime.Scheme) (*common.Config, *common.OpenAPIV3Config) {
	namer := apiopenapi.NewDefinitionNamer(schemes...)
	v2 := genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	v2.Info.Title = title
	v3 := genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	v3.Info.Title = title
	return v2, v3
}

// definitions are those of all types: what the library has for CustomResourceDefinitions, and ours.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := extensions.GetOpenAPIDefinitions(ref)
	maps.Copy(all, GetOpenAPIDefinitions(ref))
	return all
}
