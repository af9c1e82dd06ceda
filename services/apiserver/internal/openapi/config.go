package openapi

import (
	"k8s.io/apimachinery/pkg/runtime"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"
)

const title = "Keelson"

// Configs returns what publishes the definitions of the scheme's types as OpenAPI v2 and v3.
func Configs(scheme *runtime.Scheme) (*common.Config, *common.OpenAPIV3Config) {
	namer := apiopenapi.NewDefinitionNamer(scheme)
	v2 := genericapiserver.DefaultOpenAPIConfig(GetOpenAPIDefinitions, namer)
	v2.Info.Title = title
	v3 := genericapiserver.DefaultOpenAPIV3Config(GetOpenAPIDefinitions, namer)
	v3.Info.Title = title
	return v2, v3
}
