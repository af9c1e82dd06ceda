// Package paramrights asks whether who writes an admission policy or a binding may read the parameters that it names:
// by the policy's answers he could learn of them.
package paramrights

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/resource"
)

var (
	kindPath = field.NewPath("spec", "paramKind")
	refPath  = field.NewPath("spec", "paramRef")
)

// Rights are what users may read. Members of system:masters may read anything.
type Rights struct {
	Authorizer authorizer.Authorizer
	// Mapper knows the resources of kinds.
	Mapper meta.RESTMapper
	// Validating and Mutating know the policies that check objects and those that change them.
	Validating, Mutating kindOf
}

// kindOf returns the kind of the parameters of the policy of a name.
type kindOf func(ctx context.Context, policy string) (*admissionregistrationv1.ParamKind, error)

// Ref is how a binding names the parameters of its policy.
type Ref struct {
	Policy string
	*admissionregistrationv1.ParamRef
}

// AboutKind wants the writer of a policy to be allowed to read all objects of the kind of its parameters, unless the
// policy had that kind before.
func AboutKind[T any, O policy[T]](r Rights, of func(O) *admissionregistrationv1.ParamKind) rest.Ask[O] {
	return func(ctx context.Context, written, old O) field.ErrorList {
		var before *admissionregistrationv1.ParamKind
		if old != nil {
			before = of(old)
		}
		return r.askForKind(ctx, of(written), before)
	}
}

// AboutRef wants the writer of a binding to be allowed to read the parameters that it names, unless it named them
// before. kindOf is one of the functions of the Rights.
func AboutRef[T any, O policy[T]](r Rights, kindOf kindOf, of func(O) Ref) rest.Ask[O] {
	return func(ctx context.Context, written, old O) field.ErrorList {
		var before Ref
		if old != nil {
			before = of(old)
		}
		return r.askForRef(ctx, of(written), before, kindOf)
	}
}

// policy is a kind of policies or bindings.
type policy[T any] interface {
	*T
	resource.Object
}

func (r Rights) askForKind(ctx context.Context, kind, before *admissionregistrationv1.ParamKind) field.ErrorList {
	if kind == nil || before != nil && *before == *kind {
		return nil
	}
	return r.ask(ctx, kindPath, func() (authorizer.AttributesRecord, string) {
		return needed(kind, all, all, r.resource),
			fmt.Sprintf("all objects of the kind %s of %s", kind.Kind, kind.APIVersion)
	})
}

func (r Rights) askForRef(ctx context.Context, ref, before Ref, kindOf kindOf) field.ErrorList {
	if ref.ParamRef == nil || equality.Semantic.DeepEqual(ref, before) {
		return nil
	}
	return r.ask(ctx, refPath, func() (authorizer.AttributesRecord, string) {
		kind, err := kindOf(ctx, ref.Policy)
		if err != nil {
			kind = nil
		}
		return needed(kind, ref.Namespace, ref.Name, r.resource), describe(kind, ref)
	})
}

func describe(kind *admissionregistrationv1.ParamKind, ref Ref) string {
	of := fmt.Sprintf("any kind, since the kind of the parameters of policy %q is not known", ref.Policy)
	if kind != nil {
		of = fmt.Sprintf("the kind %s of %s", kind.Kind, kind.APIVersion)
	}
	what, where := "all objects", "all namespaces"
	if ref.Name != "" {
		what = fmt.Sprintf("objects called %q", ref.Name)
	}
	if ref.Namespace != "" {
		where = fmt.Sprintf("the namespace %q", ref.Namespace)
	}
	return fmt.Sprintf("%s in %s of %s", what, where, of)
}

// ask finds out which right is needed only for those who may lack it.
func (r Rights) ask(
	ctx context.Context, path *field.Path, right func() (authorizer.AttributesRecord, string),
) field.ErrorList {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return field.ErrorList{field.InternalError(path, errors.New("no user on request"))}
	}
	if slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		return nil
	}
	attributes, what := right()
	attributes.User = who
	decision, _, err := r.Authorizer.Authorize(ctx, attributes)
	if decision == authorizer.DecisionAllow {
		return nil
	}
	says := fmt.Sprintf("user %q needs the verb \"get\" on %s", who.GetName(), what)
	if err != nil {
		says += ": " + err.Error()
	}
	return field.ErrorList{field.Forbidden(path, says)}
}

// resource is the one of the kind, if there is one.
func (r Rights) resource(kind schema.GroupVersionKind) (string, bool) {
	mapping, err := r.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return "", false
	}
	return mapping.Resource.Resource, true
}
