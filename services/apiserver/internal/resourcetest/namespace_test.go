package resourcetest

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/apiserver/internal/servertest"
)

// A namespace is deleted in two steps: marked first, gone with its last finalizer. Nothing new gets in meanwhile.
func testNamespaces(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	namespaces := s.Client.CoreV1().Namespaces()
	stored := must[*corev1.Namespace](t, "creating")(namespaces.Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "brief-"}}, metav1.CreateOptions{}))
	name := stored.Name
	if stored.Status.Phase != corev1.NamespaceActive || stored.Labels[corev1.LabelMetadataName] != name ||
		len(stored.Spec.Finalizers) != 1 {
		t.Errorf("stored %+v", stored)
	}
	// DEP-230: objects get into a new namespace at once.
	if _, err := s.Client.CoreV1().ConfigMaps(name).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
		t.Errorf("creating at once: %v", err)
	}
	other := types.UID("somebody-else")
	if err := namespaces.Delete(ctx, name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}); !apierrors.IsConflict(err) {
		t.Errorf("deleting another namespace of that name: %v", err)
	}
	if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("deleting on trial: %v", err)
	}
	if still := must[*corev1.Namespace](t, "reading")(namespaces.Get(ctx, name,
		metav1.GetOptions{})); still.Status.Phase != corev1.NamespaceActive {
		t.Error("a trial marked the namespace")
	}
	if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting: %v", err)
	}
	marked := must[*corev1.Namespace](t, "reading")(namespaces.Get(ctx, name, metav1.GetOptions{}))
	if marked.Status.Phase != corev1.NamespaceTerminating || marked.DeletionTimestamp == nil {
		t.Fatalf("after the delete: %+v", marked)
	}
	if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsConflict(err) {
		t.Errorf("deleting once more: %v", err)
	}
	servertest.Eventually(t, "nothing new gets in", func(ctx context.Context) string {
		_, err := s.Client.CoreV1().ConfigMaps(name).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "late-"}}, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) {
			return "creating: " + fmt.Sprint(err)
		}
		return ""
	})
	kept := marked.DeepCopy()
	kept.Spec.Finalizers = nil
	if kept = must[*corev1.Namespace](t, "updating")(namespaces.Update(ctx, kept,
		metav1.UpdateOptions{})); len(kept.Spec.Finalizers) != 1 {
		t.Fatal("a plain update took the finalizer away")
	}
	kept.Spec.Finalizers = nil
	if _, err := namespaces.Finalize(ctx, kept, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("finalizing: %v", err)
	}
	if _, err := namespaces.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the last finalizer: %v", err)
	}
	for _, protected := range []string{"default", "kube-system"} {
		if err := namespaces.Delete(ctx, protected, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("deleting %s: %v", protected, err)
		}
	}
}
