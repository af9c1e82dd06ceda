package rest

import (
	"context"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"keelson.dev/services/apiserver/internal/resource"
)

// scope is what holds for all strategies of a resource.
type scope struct {
	runtime.ObjectTyper
	clusterScoped bool
	// versions are those of the group.
	versions []schema.GroupVersion
}

// strategy makes a resource.Strategy what the API machinery asks for. It is made once, when the store is opened.
type strategy[O resource.Object] struct {
	resource.Strategy[O]
	scope
}

// gracefulStrategy is a strategy whose objects may outlive their delete.
type gracefulStrategy[O resource.Object] struct{ *strategy[O] }

var (
	_ genericrest.RESTCreateUpdateStrategy        = &strategy[resource.Object]{}
	_ genericrest.RESTDeleteStrategy              = &strategy[resource.Object]{}
	_ genericrest.GarbageCollectionDeleteStrategy = &strategy[resource.Object]{}
	_ genericrest.RESTGracefulDeleteStrategy      = gracefulStrategy[resource.Object]{}
	_ genericrest.UpdateResetFieldsStrategy       = &strategy[resource.Object]{}
)

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

func (s *strategy[O]) PrepareForCreate(ctx context.Context, object runtime.Object) {
	obj := object.(O)
	if s.SetRequester != nil {
		s.SetRequester(obj, requester(ctx))
	}
	if s.Strategy.PrepareForCreate != nil {
		s.Strategy.PrepareForCreate(obj)
	}
	if s.PrepareAt != nil {
		var none O
		s.PrepareAt(obj, none, metav1.Now())
	}
}

func (s *strategy[O]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	if s.Strategy.PrepareForUpdate != nil {
		s.Strategy.PrepareForUpdate(obj.(O), old.(O))
	}
	if s.PrepareAt != nil {
		s.PrepareAt(obj.(O), old.(O), metav1.Now())
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
	if s.OrphanDependents {
		return genericrest.OrphanDependents
	}
	return genericrest.DeleteDependents
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

func requester(ctx context.Context) authenticationv1.UserInfo {
	who, known := genericapirequest.UserFrom(ctx)
	if !known {
		return authenticationv1.UserInfo{}
	}
	return UserInfo(who)
}

// UserInfo is the user as the API writes one.
func UserInfo(who user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups()}
	for key, values := range who.GetExtra() {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}
