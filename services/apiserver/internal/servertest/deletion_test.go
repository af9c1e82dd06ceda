package servertest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// DEP-169, DEP-172: what waits for its dependents, or leaves them alone, is
// marked and stays until the collector takes the mark away.
func testDeletePolicies(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	client := s.Client.AppsV1().Deployments(s.Namespace(t, "policies"))
	for policy, finalizer := range map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
		metav1.DeletePropagationOrphan:     metav1.FinalizerOrphanDependents,
		metav1.DeletePropagationBackground: "",
	} {
		name := strings.ToLower(string(policy))
		if _, err := client.Create(ctx, servertest.Deployment(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := client.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Errorf("%s: %v", policy, err)
		}
		d, err := client.Get(ctx, name, metav1.GetOptions{})
		if finalizer == "" {
			if !apierrors.IsNotFound(err) {
				t.Errorf("%s: %v, want it gone", policy, err)
			}
			continue
		}
		if err != nil || d.DeletionTimestamp == nil || !slices.Contains(d.Finalizers, finalizer) {
			t.Errorf("%s: %+v, %v, want it to wait with %s", policy, d.ObjectMeta, err, finalizer)
			continue
		}
		d.Finalizers = nil
		if _, err := client.Update(ctx, d, metav1.UpdateOptions{}); err != nil {
			t.Errorf("%s: taking the finalizer away: %v", policy, err)
		}
		if _, err := client.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: without its finalizer: %v, want it gone", policy, err)
		}
	}
}

// POD-023, POD-024, POD-048: a Pod is known by its UID, which no client can choose or change.
func testIdentity(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "identity")
	client := s.Client.CoreV1().Pods(ns)
	pod := func(meta metav1.ObjectMeta) *corev1.Pod {
		t.Helper()
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}}
		created, err := client.Create(ctx, &corev1.Pod{ObjectMeta: meta, Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			t.Fatalf("creating %+v: %v", meta, err)
		}
		return created
	}
	first := pod(metav1.ObjectMeta{Name: "a", UID: "mine"})
	if first.UID == "mine" || first.UID == "" {
		t.Errorf("UID %q", first.UID)
	}
	for field, change := range map[string]func(*corev1.Pod){
		"uid":       func(p *corev1.Pod) { p.UID = "other" },
		"namespace": func(p *corev1.Pod) { p.Namespace = "default" },
		"name":      func(p *corev1.Pod) { p.Name = "b" },
	} {
		changed := first.DeepCopy()
		change(changed)
		err := s.Client.CoreV1().RESTClient().Put().Namespace(ns).Resource("pods").Name("a").Body(changed).Do(
			ctx).Error()
		if !apierrors.IsConflict(err) && !apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err) {
			t.Errorf("changing the %s: %v, want it refused", field, err)
		}
	}
	// The API takes another creation time without complaint, and keeps its own.
	changed := first.DeepCopy()
	changed.CreationTimestamp.Time = changed.CreationTimestamp.Add(-time.Hour)
	if kept, err := client.Update(ctx, changed, metav1.UpdateOptions{}); err != nil ||
		!kept.CreationTimestamp.Equal(&first.CreationTimestamp) {
		t.Errorf("after a change of the creation time: %v, %v", kept.CreationTimestamp, err)
	}
	if err := client.Delete(ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}); err != nil {
		t.Fatal(err)
	}
	if again := pod(metav1.ObjectMeta{Name: "a"}); again.UID == first.UID {
		t.Error("an object of the same name has the same UID")
	}
	generated := pod(metav1.ObjectMeta{GenerateName: "pre-"})
	if generated.GenerateName != "pre-" || !strings.HasPrefix(generated.Name, "pre-") ||
		len(generated.Name) != len("pre-")+5 {
		t.Errorf("generated %q from %q", generated.Name, generated.GenerateName)
	}
}
