package rest

import (
	"context"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Strategy holds the rules for writing one kind of object. Every function is
// pure and may be nil. The order on create is PrepareForCreate, Validate,
// Warnings, Canonicalize; on update PrepareForUpdate, ValidateUpdate,
// WarningsOnUpdate, Canonicalize.
type Strategy[O Object] struct {
	// Name says what a valid metadata.name is; nil: a DNS subdomain. The rest
	// of the metadata is checked by the API machinery.
	Name apivalidation.ValidateNameFunc

	// PrepareForCreate drops what a client must not set.
	PrepareForCreate func(obj O)
	// PrepareForUpdate takes what the request must not change from old.
	PrepareForUpdate func(obj, old O)
	// Validate and ValidateUpdate return every violation with its path. Without ValidateUpdate, Validate checks an
	// updated object too.
	Validate       func(obj O) field.ErrorList
	ValidateUpdate func(obj, old O) field.ErrorList
	// Warnings and WarningsOnUpdate are shown to the client that writes.
	Warnings         func(obj O) []string
	WarningsOnUpdate func(obj, old O) []string
	// Canonicalize brings a valid object into the form in which it is stored.
	Canonicalize func(obj O)

	// CreateOnUpdate lets a PUT create the object.
	CreateOnUpdate bool
	// RequireResourceVersion refuses updates that name no resourceVersion.
	RequireResourceVersion bool
	// Graceful is called before a delete. It returns true, with
	// options.GracePeriodSeconds set, if the object stays for that time.
	Graceful func(obj O, options *metav1.DeleteOptions) bool
	// Dependents says what a delete without a propagation policy does; empty: dependents go too.
	Dependents genericrest.GarbageCollectionPolicy
	// ResetFields are the fields that this strategy takes from the stored object, so that no manager comes to own them;
	// for example "spec" or "status.certificate".
	ResetFields []string
}

// scope is what holds for all strategies of a resource.
type scope struct {
	runtime.ObjectTyper
	clusterScoped bool
	// versions are those of the group.
	versions []schema.GroupVersion
}

// strategy makes a Strategy what the API machinery asks for. It is made once, when the store is opened.
type strategy[O Object] struct {
	Strategy[O]
	scope
}

// gracefulStrategy is a strategy whose objects may outlive their delete.
type gracefulStrategy[O Object] struct{ *strategy[O] }

var (
	_ genericrest.RESTCreateUpdateStrategy        = &strategy[Object]{}
	_ genericrest.RESTDeleteStrategy              = &strategy[Object]{}
	_ genericrest.GarbageCollectionDeleteStrategy = &strategy[Object]{}
	_ genericrest.RESTGracefulDeleteStrategy      = gracefulStrategy[Object]{}
	_ genericrest.UpdateResetFieldsStrategy       = &strategy[Object]{}
)

// NewCreateUpdateStrategy is for a second view of a store that creates and updates with rules of its own.
func NewCreateUpdateStrategy[O Object](s *Storage, rules Strategy[O]) genericrest.RESTCreateUpdateStrategy {
	return &strategy[O]{rules, s.scope}
}

func (s *strategy[O]) forDelete() genericrest.RESTDeleteStrategy {
	if s.Graceful == nil {
		return s
	}
	return gracefulStrategy[O]{s}
}

func (s *strategy[O]) GenerateName(base string) string {
	return names.SimpleNameGenerator.GenerateName(base)
}

func (s *strategy[O]) NamespaceScoped() bool { return !s.clusterScoped }

func (s *strategy[O]) PrepareForCreate(_ context.Context, obj runtime.Object) {
	if s.Strategy.PrepareForCreate != nil {
		s.Strategy.PrepareForCreate(obj.(O))
	}
}

func (s *strategy[O]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	if s.Strategy.PrepareForUpdate != nil {
		s.Strategy.PrepareForUpdate(obj.(O), old.(O))
	}
}

func (s *strategy[O]) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	o := obj.(O)
	isName := s.Name
	if isName == nil {
		isName = apivalidation.NameIsDNSSubdomain
	}
	errs := apivalidation.ValidateObjectMetaAccessor(o, s.NamespaceScoped(), isName, field.NewPath("metadata"))
	if s.Strategy.Validate != nil {
		errs = append(errs, s.Strategy.Validate(o)...)
	}
	return append(errs, refusals(ctx)...)
}

func (s *strategy[O]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	errs := refusals(ctx)
	if s.Strategy.ValidateUpdate != nil {
		errs = append(s.Strategy.ValidateUpdate(obj.(O), old.(O)), errs...)
	}
	return errs
}

func (s *strategy[O]) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	if s.Warnings == nil {
		return nil
	}
	return s.Warnings(obj.(O))
}

func (s *strategy[O]) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	if s.Strategy.WarningsOnUpdate == nil {
		return nil
	}
	return s.Strategy.WarningsOnUpdate(obj.(O), old.(O))
}

func (s *strategy[O]) Canonicalize(obj runtime.Object) {
	if s.Strategy.Canonicalize != nil {
		s.Strategy.Canonicalize(obj.(O))
	}
}

func (s *strategy[O]) AllowCreateOnUpdate(context.Context) bool { return s.CreateOnUpdate }

func (s *strategy[O]) AllowUnconditionalUpdate(context.Context) bool {
	return !s.RequireResourceVersion
}

func (s *strategy[O]) DefaultGarbageCollectionPolicy(context.Context) genericrest.GarbageCollectionPolicy {
	if s.Dependents == "" {
		return genericrest.DeleteDependents
	}
	return s.Dependents
}

func (s gracefulStrategy[O]) CheckGracefulDelete(_ context.Context, obj runtime.Object,
	options *metav1.DeleteOptions) bool {
	return s.Graceful(obj.(O), options)
}

// GetResetFields implements the API machinery's ResetFieldsStrategy.
func (s *strategy[O]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if len(s.ResetFields) == 0 {
		return nil
	}
	out := make(map[fieldpath.APIVersion]*fieldpath.Set, len(s.versions))
	for _, version := range s.versions {
		set := fieldpath.NewSet()
		for _, name := range s.ResetFields {
			var path []any
			for part := range strings.SplitSeq(name, ".") {
				path = append(path, part)
			}
			set.Insert(fieldpath.MakePathOrDie(path...))
		}
		out[fieldpath.APIVersion(version.String())] = set
	}
	return out
}
