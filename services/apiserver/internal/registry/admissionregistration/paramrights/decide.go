package paramrights

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const all = "*"

// needed is the right to read the object of the name and namespace whose kind is that of parameters. A kind of which
// the resource is not known could be any, and so could one that is not known itself, which is nil.
func needed(kind *admissionregistrationv1.ParamKind, namespace, name string,
	resolve func(schema.GroupVersionKind) (string, bool)) authorizer.AttributesRecord {
	right := authorizer.AttributesRecord{Verb: "get", APIGroup: all, APIVersion: all, Resource: all,
		Namespace: namespace, Name: name, ResourceRequest: true}
	if kind == nil {
		return right
	}
	version, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return right
	}
	right.APIGroup, right.APIVersion = version.Group, version.Version
	if resource, ok := resolve(version.WithKind(kind.Kind)); ok {
		right.Resource = resource
	}
	return right
}
