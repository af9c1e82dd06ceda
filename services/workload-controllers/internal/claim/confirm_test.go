package claim

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// DEP-159: only an owner that the server knows by this UID and that is not being deleted adopts.
func TestConfirm(t *testing.T) {
	refused := errors.New("no answer")
	for name, c := range map[string]struct {
		owner  *appsv1.ReplicaSet // as the server has it
		answer error
		ok     bool
	}{
		"there":               {owner: &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: "web-uid"}}, ok: true},
		"gone":                {},
		"another of the name": {owner: &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: "other"}}},
		"being deleted": {owner: &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: "web-uid",
			DeletionTimestamp: &metav1.Time{}, Finalizers: []string{"test.keelson.dev/hold"}}}},
		"no answer": {owner: &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: "web-uid"}}, answer: refused},
	} {
		t.Run(name, func(t *testing.T) {
			server := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context,
				under client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if c.answer != nil {
					return c.answer
				}
				return under.Get(ctx, key, object, options...)
			}})
			if c.owner != nil {
				c.owner.Namespace, c.owner.Name = web.Namespace, web.Name
				if c.owner.DeletionTimestamp != nil {
					c.owner.DeletionTimestamp.Time = metav1.Now().Time
				}
				server.WithObjects(c.owner)
			}
			err := Confirm(t.Context(), server.Build(), web)
			if (err == nil) != c.ok || c.answer != nil && !errors.Is(err, c.answer) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// What is gone, or is not the object that was meant, needs no owner.
func TestIgnoreGone(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	invalid := func(path string, more ...string) error {
		return fmt.Errorf("patching: %w", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", field.ErrorList{
			field.Invalid(field.NewPath(path, more...), "x", "field is immutable")}))
	}
	for _, err := range []error{nil, apierrors.NewNotFound(pods, "p"),
		invalid("metadata", "uid")} {
		if got := IgnoreGone(err); got != nil {
			t.Errorf("%v is not passed over", got)
		}
	}
	for _, err := range []error{errors.New("refused"), invalid("data"), invalid("metadata", "labels"),
		apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil),
		apierrors.NewConflict(pods, "p", errors.New("version")),
		apierrors.NewForbidden(pods, "p", errors.New("rights"))} {
		if got := IgnoreGone(err); !errors.Is(got, err) {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}
