package podspec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
)

// What the downward API tells a container about its Pod: as a variable, and as a file.
var (
	envFields = []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	}
	fileFields = []string{
		"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
	}
	refResources = []string{
		"limits.cpu", "limits.ephemeral-storage", "limits.memory",
		"requests.cpu", "requests.ephemeral-storage", "requests.memory",
	}
)

// validateFieldRef checks a reference to a field of the Pod. One entry of the labels or annotations may be named
// everywhere, the whole map only where it is listed.
func validateFieldRef(ref *corev1.ObjectFieldSelector, fldPath *field.Path, supported []string) field.ErrorList {
	if ref.APIVersion == "" {
		return field.ErrorList{field.Required(fldPath.Child("apiVersion"), "")}
	}
	at := fldPath.Child("fieldPath")
	if ref.FieldPath == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if ref.APIVersion != "v1" {
		return field.ErrorList{field.Invalid(at, ref.FieldPath, "error converting fieldPath: unsupported pod version: "+
			ref.APIVersion)}
	}
	if name, key, ok := subscript(ref.FieldPath); ok {
		return validateSubscript(name, key, at)
	}
	switch {
	case slices.Contains(supported, ref.FieldPath):
		return nil
	case slices.Contains(envFields, ref.FieldPath) || slices.Contains(fileFields, ref.FieldPath):
		return field.ErrorList{field.NotSupported(at, ref.FieldPath, supported)}
	}
	return field.ErrorList{field.Invalid(at, ref.FieldPath, "error converting fieldPath: field label not supported: "+
		ref.FieldPath)}
}

// subscript splits a path such as metadata.labels['key'].
func subscript(fieldPath string) (name, key string, ok bool) {
	rest, closed := strings.CutSuffix(fieldPath, "']")
	name, key, opened := strings.Cut(rest, "['")
	return name, key, closed && opened && name != ""
}

func validateSubscript(name, key string, fldPath *field.Path) field.ErrorList {
	switch name {
	case "metadata.annotations":
		return fieldcheck.Messages(key, fldPath, validation.IsQualifiedName(strings.ToLower(key)))
	case "metadata.labels":
		return fieldcheck.Messages(key, fldPath, validation.IsQualifiedName(key))
	}
	return field.ErrorList{field.Invalid(fldPath, name, "does not support subscript")}
}

// validateResourceRef checks a reference to a container's request or limit. A file belongs to no container, so there
// the container is named.
func validateResourceRef(ref *corev1.ResourceFieldSelector, fldPath *field.Path, file bool) field.ErrorList {
	var errs field.ErrorList
	if file && ref.ContainerName == "" {
		errs = append(errs, field.Required(fldPath.Child("containerName"), ""))
	}
	switch {
	case ref.Resource == "":
		return append(errs, field.Required(fldPath.Child("resource"), ""))
	case slices.Contains(refResources, ref.Resource), isHugePagesRef(ref.Resource):
		return append(errs, validateDivisor(ref, fldPath.Child("divisor"))...)
	}
	return append(errs, field.NotSupported(fldPath.Child("resource"), ref.Resource, refResources))
}

func isHugePagesRef(name string) bool {
	return strings.HasPrefix(name, "requests."+corev1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(name, "limits."+corev1.ResourceHugePagesPrefix)
}

var (
	cpuDivisors  = []string{"1m", "1"}
	byteDivisors = []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
)

func validateDivisor(ref *corev1.ResourceFieldSelector, fldPath *field.Path) field.ErrorList {
	if ref.Divisor.IsZero() {
		return nil
	}
	_, name, _ := strings.Cut(ref.Resource, ".")
	allowed := byteDivisors
	switch {
	case name == string(corev1.ResourceCPU):
		allowed = cpuDivisors
	case isHugePages(corev1.ResourceName(name)):
		name = "hugepages"
	case name == string(corev1.ResourceEphemeralStorage):
		name = "local ephemeral storage"
	}
	for _, divisor := range allowed {
		if ref.Divisor.Cmp(resource.MustParse(divisor)) == 0 {
			return nil
		}
	}
	separator := ", "
	if len(allowed) == 2 {
		separator = " and "
	}
	return field.ErrorList{field.Invalid(fldPath, ref.Divisor.String(), fmt.Sprintf(
		"only divisor's values %s are supported with the %s resource", strings.Join(allowed, separator), name))}
}
