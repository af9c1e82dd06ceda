package csrapproving

import (
	"context"
	"errors"
	"reflect"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The controller asks the apiserver about the requester, and approves nothing while the apiserver does not answer.
func TestReconcile(t *testing.T) {
	request := asking(t, "system:node:n1", []string{"system:nodes"}, by("ann"))
	request.Spec.UID, request.Spec.Groups = "u1", []string{"bootstrappers"}
	request.Spec.Extra = map[string]certificatesv1.ExtraValue{"scopes": {"some"}}
	var asked []authorizationv1.SubjectAccessReviewSpec
	answer, broken := authorizationv1.SubjectAccessReviewStatus{}, errors.New("broken")
	approvals := 0
	answers := interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			review := object.(*authorizationv1.SubjectAccessReview)
			asked, review.Status = append(asked, review.Spec), answer
			return broken
		},
		SubResourceUpdate: func(_ context.Context, _ client.Client, subresource string, object client.Object,
			_ ...client.SubResourceUpdateOption) error {
			written := object.(*certificatesv1.CertificateSigningRequest)
			if subresource != "approval" || len(written.Status.Conditions) != 1 {
				t.Errorf("writes /%s: %+v", subresource, written.Status)
			}
			approvals++
			return nil
		},
	}
	api := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(request).WithInterceptorFuncs(answers).Build()
	c := &Controller{client: api}
	pass := func() (reconcile.Result, error) {
		return c.steps().Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(request)})
	}
	if _, err := pass(); !errors.Is(err, broken) || approvals != 0 {
		t.Errorf("no answer: %v, %d approvals", err, approvals)
	}
	broken = nil
	if result, err := pass(); err != nil || approvals != 0 || result.RequeueAfter != lookAgain {
		t.Errorf("not allowed: %v, %v, %d approvals", result, err, approvals)
	}
	answer = authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}
	if _, err := pass(); err != nil || approvals != 0 {
		t.Errorf("denied: %v, %d approvals", err, approvals)
	}
	answer.Denied = false
	if _, err := pass(); err != nil || approvals != 1 {
		t.Errorf("allowed: %v, %d approvals", err, approvals)
	}
	want := authorizationv1.SubjectAccessReviewSpec{User: "ann", UID: "u1", Groups: []string{"bootstrappers"},
		Extra: map[string]authorizationv1.ExtraValue{"scopes": {"some"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: "certificates.k8s.io",
			Version: "*", Resource: "certificatesigningrequests", Subresource: "nodeclient"}}
	for _, spec := range asked {
		if !reflect.DeepEqual(spec, want) {
			t.Errorf("asks %+v", spec)
		}
	}
}
