package ownerpermissions

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Who may not delete an object gives it no owner, and who may not write an owner's finalizers does not hold it up.
func TestValidate(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	owned := func(kind string, blocks bool) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m", OwnerReferences: []metav1.
			OwnerReference{{APIVersion: "v1", Kind: kind, Name: "p", UID: "u", BlockOwnerDeletion: &blocks}}}}
	}
	for _, row := range []struct {
		name, rights string
		object       *corev1.ConfigMap
		want         string
	}{
		{"no owner", "", &corev1.ConfigMap{}, ""},
		{"no right", "", owned("Pod", false), "cannot set an ownerRef on a resource you can't delete: no"},
		{"who may delete it", "delete n configmaps m", owned("Pod", false), ""},
		{"who may delete it only", "delete n configmaps m", owned("Pod", true),
			"cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: no"},
		{"who may both", "delete n configmaps m,update n pods/finalizers p", owned("Pod", true), ""},
		{"an unknown owner", "delete n configmaps m", owned("Nothing", true), "is not known"},
	} {
		allowed := authorizer.AuthorizerFunc(
			func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string,
				error) {
				resource := a.GetResource()
				if a.GetSubresource() != "" {
					resource += "/" + a.GetSubresource()
				}
				asked := strings.Join([]string{a.GetVerb(), a.GetNamespace(), resource, a.GetName()}, " ")
				for right := range strings.SplitSeq(row.rights, ",") {
					if right == asked && a.GetUser().GetName() == "ann" {
						return authorizer.DecisionAllow, "", nil
					}
				}
				return authorizer.DecisionNoOpinion, "no", nil
			},
		)
		p := &Plugin{Handler: admission.NewHandler(admission.Create)}
		p.SetRESTMapper(mapper)
		p.SetAuthorizer(allowed)
		err := p.Validate(t.Context(), admission.NewAttributesRecord(
			row.object,
			nil,
			corev1.SchemeGroupVersion.WithKind(
				"ConfigMap",
			),
			"n",
			"m",
			corev1.SchemeGroupVersion.WithResource("configmaps"),
			"",
			admission.Create,
			nil,
			false,
			&user.DefaultInfo{Name: "ann"},
		), nil)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}
