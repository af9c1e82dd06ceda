package device

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Namespaces reads a Namespace.
type Namespaces func(ctx context.Context, name string) (*corev1.Namespace, error)

// AllowAdmin returns what is wrong with a request for admin access, at the path, to devices that others may have: only
// namespaces with a label let their users do that. Without a path there is no such request.
func (n Namespaces) AllowAdmin(ctx context.Context, namespace string, asks *field.Path) field.ErrorList {
	if asks == nil {
		return nil
	}
	found, err := n(ctx, namespace)
	switch {
	case err != nil:
		return field.ErrorList{field.InternalError(asks, fmt.Errorf("reading the namespace %s: %w", namespace, err))}
	case found.Labels[resourcev1.DRAAdminNamespaceLabelKey] != "true":
		return field.ErrorList{field.Forbidden(asks, fmt.Sprintf("admin access to devices requires the `%s: true` "+
			"label on the containing namespace", resourcev1.DRAAdminNamespaceLabelKey))}
	}
	return nil
}

// AsksAsAdmin is the path of the first request that asks as an administrator, in the spec of a claim at path; nil
// where none does.
func AsksAsAdmin(spec *resourcev1.ResourceClaimSpec, path *field.Path) *field.Path {
	for i := range spec.Devices.Requests {
		if exact := spec.Devices.Requests[i].Exactly; exact != nil && ptr.Deref(exact.AdminAccess, false) {
			return path.Child("devices", "requests").Index(i).Child("exactly", "adminAccess")
		}
	}
	return nil
}
