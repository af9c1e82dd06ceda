// Package lease is the resource Lease of group coordination.k8s.io: who holds something, and until when.
package lease

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/fieldcheck"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

var resource = rest.Resource[*coordinationv1.Lease]{
	Group:    coordinationv1.GroupName,
	Name:     "leases",
	Singular: "lease",
	New:      func() *coordinationv1.Lease { return &coordinationv1.Lease{} },
	NewList:  func() runtime.Object { return &coordinationv1.LeaseList{} },
	Strategy: rest.Strategy[*coordinationv1.Lease]{
		Name:           apivalidation.NameIsDNSSubdomain,
		Validate:       Validate,
		ValidateUpdate: func(l, _ *coordinationv1.Lease) field.ErrorList { return Validate(l) },
		CreateOnUpdate: true,
	},
	Columns: columns,
}

var columns = rest.Columns[*coordinationv1.Lease]{
	Definitions: []metav1.TableColumnDefinition{
		rest.NameColumn(),
		rest.Column("Holder", "string", coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"]),
		rest.AgeColumn(),
	},
	Row: func(l *coordinationv1.Lease, now time.Time) []any {
		return []any{l.Name, ptr.Deref(l.Spec.HolderIdentity, ""), rest.Age(l.CreationTimestamp, now)}
	},
}

// AddToScheme registers defaults and field selectors.
func AddToScheme(scheme *runtime.Scheme) error { return resource.AddToScheme(scheme) }

// NewStorage opens the store.
func NewStorage(o rest.Options) (map[string]genericrest.Storage, error) {
	storage, err := resource.NewStorage(o)
	if err != nil {
		return nil, err
	}
	return storage.Map(), nil
}

// Validate returns what is wrong with a Lease.
func Validate(l *coordinationv1.Lease) field.ErrorList {
	spec, path := &l.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if spec.LeaseDurationSeconds != nil && *spec.LeaseDurationSeconds <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *spec.LeaseDurationSeconds, "must be greater than 0"))
	}
	errs = append(errs, fieldcheck.NonNegativePtr(spec.LeaseTransitions, path.Child("leaseTransitions"))...)
	return append(errs, validateStrategy(spec, path)...)
}

// validateStrategy checks how a coordinated election picks the holder.
func validateStrategy(spec *coordinationv1.LeaseSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Strategy != nil && *spec.Strategy != coordinationv1.OldestEmulationVersion {
		path := path.Child("strategy")
		errs = append(errs, fieldcheck.Messages(*spec.Strategy, validation.IsQualifiedName(string(*spec.Strategy)), path)...)
	}
	if ptr.Deref(spec.PreferredHolder, "") != "" && ptr.Deref(spec.Strategy, "") == "" {
		errs = append(errs, field.Forbidden(path.Child("preferredHolder"), "may only be specified if `strategy` is defined"))
	}
	return errs
}
