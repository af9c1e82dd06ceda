package resource

import "k8s.io/apimachinery/pkg/api/validate/content"

// PathSegmentName is the Strategy.Name of the kinds whose names may be whatever can stand as one segment of a path,
// system:node for example.
func PathSegmentName(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}
