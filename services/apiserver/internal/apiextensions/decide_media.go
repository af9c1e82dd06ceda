package apiextensions

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// decideMedia returns the media types that a write of a custom resource may be in, where it is in one that the library
// takes and then cannot handle; nil: the library answers. It breaks off at objects in protobuf, in which only the scale
// and what deletes come, and fails at the server-side apply of a scale.
func decideMedia(verb, subresource, mediaType string) []string {
	switch {
	case (verb == "create" || verb == "update") && subresource != "scale" && mediaType == runtime.ContentTypeProtobuf:
		return []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML}
	case verb == "patch" && subresource == "scale" && mediaType == string(types.ApplyYAMLPatchType):
		return []string{string(types.JSONPatchType), string(types.MergePatchType)}
	}
	return nil
}
