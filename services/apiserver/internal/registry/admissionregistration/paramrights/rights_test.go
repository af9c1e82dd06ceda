package paramrights

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/ptr"
)

// rightsOf writes down in asked what the authorizer was asked for, and allows that alone which is in rights.
func rightsOf(rights string, asked *string) Rights {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return Rights{Mapper: mapper, Authorizer: authorizer.AuthorizerFunc(
		func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			*asked = strings.Join([]string{a.GetVerb(), a.GetAPIGroup() + "/" + a.GetAPIVersion(), a.GetResource(),
				a.GetNamespace(), a.GetName()}, " ")
			if *asked == rights {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		})}
}

func as(t *testing.T, groups ...string) context.Context {
	t.Helper()
	return request.WithUser(t.Context(), &user.DefaultInfo{Name: "ann", Groups: groups})
}

func TestAskForKind(t *testing.T) {
	maps := &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	same := *maps
	for name, row := range map[string]struct {
		kind, before *admissionregistrationv1.ParamKind
		groups       []string
		asked        string
	}{
		"no parameters": {},
		"none any more": {before: maps},
		"new":           {kind: maps, asked: "get /v1 configmaps * *"},
		"as before":     {kind: maps, before: &same},
		"another": {kind: &admissionregistrationv1.ParamKind{APIVersion: "a.b/v1", Kind: "ConfigMap"},
			before: maps, asked: "get a.b/v1 * * *"},
		"unknown": {kind: &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "Nothing"},
			asked: "get /v1 * * *"},
		"malformed": {kind: &admissionregistrationv1.ParamKind{APIVersion: "a/b/c", Kind: "X"},
			asked: "get */* * * *"},
		"of an administrator": {kind: maps, groups: []string{user.SystemPrivilegedGroup}},
	} {
		var asked string
		errs := rightsOf("", &asked).askForKind(as(t, row.groups...), row.kind, row.before)
		check(t, name, errs, asked, row.asked, "spec.paramKind")
		if errs := rightsOf(row.asked, &asked).askForKind(as(t, row.groups...), row.kind, row.before); len(errs) > 0 {
			t.Errorf("%s: who may is refused: %v", name, errs)
		}
	}
}

func TestAskForRef(t *testing.T) {
	ref := func(policy, namespace, name string) Ref {
		return Ref{policy, &admissionregistrationv1.ParamRef{Namespace: namespace, Name: name,
			ParameterNotFoundAction: ptr.To(admissionregistrationv1.DenyAction)}}
	}
	selecting := ref("p", "n", "")
	selecting.Selector = &metav1.LabelSelector{}
	kindOf := func(_ context.Context, policy string) (*admissionregistrationv1.ParamKind, error) {
		switch policy {
		case "p", "q":
			return &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}, nil
		case "none":
			return nil, nil
		}
		return nil, errors.New("not found")
	}
	for name, row := range map[string]struct {
		ref, before Ref
		groups      []string
		asked       string
	}{
		"no parameters":       {ref: Ref{Policy: "p"}},
		"none any more":       {ref: Ref{Policy: "p"}, before: ref("p", "n", "m")},
		"new":                 {ref: ref("p", "n", "m"), asked: "get /v1 configmaps n m"},
		"as before":           {ref: ref("p", "n", "m"), before: ref("p", "n", "m")},
		"another":             {ref: ref("p", "n", "m"), before: ref("p", "n", "l"), asked: "get /v1 configmaps n m"},
		"of another policy":   {ref: ref("p", "n", "m"), before: ref("q", "n", "m"), asked: "get /v1 configmaps n m"},
		"in any namespace":    {ref: ref("p", "", "m"), asked: "get /v1 configmaps  m"},
		"by labels":           {ref: selecting, asked: "get /v1 configmaps n "},
		"of no policy":        {ref: ref("gone", "n", "m"), asked: "get */* * n m"},
		"of one without":      {ref: ref("none", "n", "m"), asked: "get */* * n m"},
		"of an administrator": {ref: ref("p", "n", "m"), groups: []string{user.SystemPrivilegedGroup}},
	} {
		var asked string
		errs := rightsOf("", &asked).askForRef(as(t, row.groups...), row.ref, row.before, kindOf)
		check(t, name, errs, asked, row.asked, "spec.paramRef")
		errs = rightsOf(row.asked, &asked).askForRef(as(t, row.groups...), row.ref, row.before, kindOf)
		if len(errs) > 0 {
			t.Errorf("%s: who may is refused: %v", name, errs)
		}
	}
}

func check(t *testing.T, name string, errs field.ErrorList, asked, want, path string) {
	t.Helper()
	if asked != want {
		t.Errorf("%s: asked for %q, want %q", name, asked, want)
	}
	if (len(errs) == 0) != (want == "") {
		t.Errorf("%s: %v", name, errs)
	}
	for _, err := range errs {
		if err.Type != field.ErrorTypeForbidden || err.Field != path || !strings.Contains(err.Detail, `user "ann"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A request without a user has no rights.
func TestAskWithoutUser(t *testing.T) {
	var asked string
	if errs := rightsOf("", &asked).askForKind(t.Context(), &admissionregistrationv1.ParamKind{}, nil); len(errs) != 1 {
		t.Errorf("got %v", errs)
	}
}
