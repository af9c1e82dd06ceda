package servertest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// DEP-019: the generation counts changes of the spec; status and spec are written apart.
func testGeneration(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	client := s.Client.AppsV1().Deployments(s.Namespace(t, "generation"))
	d, err := client.Create(ctx, servertest.Deployment("d"), metav1.CreateOptions{})
	if err != nil || d.Generation != 1 {
		t.Fatalf("created with generation %d, %v, want 1", d.Generation, err)
	}
	patch := func(body string, subresources ...string) *appsv1.Deployment {
		t.Helper()
		d, err := client.Patch(ctx, "d", types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
		if err != nil {
			t.Fatalf("patching %s: %v", body, err)
		}
		return d
	}
	if d := patch(`{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}}}`); d.Generation != 1 {
		t.Errorf("labels raise the generation to %d", d.Generation)
	}
	if d := patch(`{"spec":{"replicas":5},"status":{"replicas":9}}`, "status"); d.Generation != 1 || *d.Spec.Replicas != 1 || d.Status.Replicas != 9 {
		t.Errorf("a write to /status: generation %d, replicas %d, status %+v", d.Generation, *d.Spec.Replicas, d.Status)
	}
	if d := patch(`{"spec":{"replicas":5},"status":{"replicas":3}}`); d.Generation != 2 || *d.Spec.Replicas != 5 || d.Status.Replicas != 9 {
		t.Errorf("a write to the object: generation %d, replicas %d, status %+v", d.Generation, *d.Spec.Replicas, d.Status)
	}
	if d := patch(`{"metadata":{"generation":77}}`); d.Generation != 2 {
		t.Errorf("a client sets the generation to %d", d.Generation)
	}
}

// DEP-020: /scale of Deployment and ReplicaSet.
func testScale(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	client := s.Client.AppsV1().Deployments(s.Namespace(t, "scale"))
	if _, err := client.Create(ctx, servertest.Deployment("d"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	scale, err := client.GetScale(ctx, "d", metav1.GetOptions{})
	if err != nil || scale.Spec.Replicas != 1 || scale.Status.Selector != "app=d" {
		t.Fatalf("scale %+v, %v", scale, err)
	}
	scale.Spec.Replicas = 4
	if scale, err = client.UpdateScale(ctx, "d", scale, metav1.UpdateOptions{}); err != nil || scale.Spec.Replicas != 4 {
		t.Fatalf("scaling: %+v, %v", scale, err)
	}
	d, err := client.Get(ctx, "d", metav1.GetOptions{})
	if err != nil || *d.Spec.Replicas != 4 || d.Generation != 2 {
		t.Errorf("after scaling: replicas %d, generation %d, %v", *d.Spec.Replicas, d.Generation, err)
	}
	stale := scale.DeepCopy()
	stale.ResourceVersion = "1"
	if _, err := client.UpdateScale(ctx, "d", stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("scaling an old version: %v, want a conflict", err)
	}
	scale.Spec.Replicas = -1
	if _, err := client.UpdateScale(ctx, "d", scale, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.replicas") {
		t.Errorf("a negative count: %v, want invalid", err)
	}
}

// DEP-098: what is left out of an applied manifest, as replicas that something
// else sets through /scale, stays as it is.
func testApplyLeavesReplicas(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "applyscale")
	client := s.Client.AppsV1().Deployments(ns)
	manifest := func(image string, replicas ...int32) *appsv1apply.DeploymentApplyConfiguration {
		labels := map[string]string{"app": "d"}
		spec := appsv1apply.DeploymentSpec()
		for _, n := range replicas {
			spec.WithReplicas(n)
		}
		return appsv1apply.Deployment("d", ns).WithSpec(spec.
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1apply.PodTemplateSpec().WithLabels(labels).WithSpec(corev1apply.PodSpec().
				WithContainers(corev1apply.Container().WithName("c").WithImage(image)))))
	}
	options := metav1.ApplyOptions{FieldManager: "user"}
	if _, err := client.Apply(ctx, manifest("x:1", 3), options); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Patch(ctx, "d", types.MergePatchType, []byte(`{"spec":{"replicas":7}}`), metav1.PatchOptions{FieldManager: "scaler"}, "scale"); err != nil {
		t.Fatal(err)
	}
	d, err := client.Apply(ctx, manifest("x:2"), options)
	if err != nil || *d.Spec.Replicas != 7 || d.Spec.Template.Spec.Containers[0].Image != "x:2" {
		t.Errorf("replicas %v, %v, want 7 and the new image", d.Spec.Replicas, err)
	}
	if !slices.ContainsFunc(d.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "scaler" && e.Subresource == "scale" }) {
		t.Errorf("the scaler does not own what it set: %+v", d.ManagedFields)
	}
}

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

// POD-023, POD-024, POD-048: a Pod is known by its UID, which nobody chooses and nobody changes.
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
		err := s.Client.CoreV1().RESTClient().Put().Namespace(ns).Resource("pods").Name("a").Body(changed).Do(ctx).Error()
		if !apierrors.IsConflict(err) && !apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err) {
			t.Errorf("changing the %s: %v, want it refused", field, err)
		}
	}
	// The API takes another creation time without complaint, and keeps its own.
	changed := first.DeepCopy()
	changed.CreationTimestamp.Time = changed.CreationTimestamp.Add(-time.Hour)
	if kept, err := client.Update(ctx, changed, metav1.UpdateOptions{}); err != nil || !kept.CreationTimestamp.Equal(&first.CreationTimestamp) {
		t.Errorf("after a change of the creation time: %v, %v", kept.CreationTimestamp, err)
	}
	if err := client.Delete(ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}); err != nil {
		t.Fatal(err)
	}
	if again := pod(metav1.ObjectMeta{Name: "a"}); again.UID == first.UID {
		t.Error("an object of the same name has the same UID")
	}
	generated := pod(metav1.ObjectMeta{GenerateName: "pre-"})
	if generated.GenerateName != "pre-" || !strings.HasPrefix(generated.Name, "pre-") || len(generated.Name) != len("pre-")+5 {
		t.Errorf("generated %q from %q", generated.Name, generated.GenerateName)
	}
}
