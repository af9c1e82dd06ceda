package resourcetest

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"

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
	if d := patch(`{"spec":{"replicas":5},"status":{"replicas":9}}`, "status"); d.Generation != 1 ||
		*d.Spec.Replicas != 1 || d.Status.Replicas != 9 {
		t.Errorf("a write to /status: generation %d, replicas %d, status %+v", d.Generation, *d.Spec.Replicas, d.Status)
	}
	if d := patch(`{"spec":{"replicas":5},"status":{"replicas":3}}`); d.Generation != 2 || *d.Spec.Replicas != 5 ||
		d.Status.Replicas != 9 {
		t.Errorf("a write to the object: generation %d, replicas %d, status %+v", d.Generation, *d.Spec.Replicas,
			d.Status)
	}
	if d := patch(`{"metadata":{"generation":77}}`); d.Generation != 2 {
		t.Errorf("a client sets the generation to %d", d.Generation)
	}
}

// DEP-020: /scale of Deployment and ReplicaSet.
func testScale(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	client := s.Client.AppsV1().Deployments(s.Namespace(t, "replicas"))
	if _, err := client.Create(ctx, servertest.Deployment("d"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	scale, err := client.GetScale(ctx, "d", metav1.GetOptions{})
	if err != nil || scale.Spec.Replicas != 1 || scale.Status.Selector != "app=d" {
		t.Fatalf("scale %+v, %v", scale, err)
	}
	scale.Spec.Replicas = 4
	if scale, err = client.UpdateScale(ctx, "d", scale, metav1.UpdateOptions{}); err != nil ||
		scale.Spec.Replicas != 4 {
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
	if _, err := client.UpdateScale(ctx, "d", scale, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "spec.replicas") {
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
	if _, err := client.Patch(ctx, "d", types.MergePatchType, []byte(`{"spec":{"replicas":7}}`),
		metav1.PatchOptions{FieldManager: "scaler"}, "scale"); err != nil {
		t.Fatal(err)
	}
	d, err := client.Apply(ctx, manifest("x:2"), options)
	if err != nil || *d.Spec.Replicas != 7 || d.Spec.Template.Spec.Containers[0].Image != "x:2" {
		t.Errorf("replicas %v, %v, want 7 and the new image", d.Spec.Replicas, err)
	}
	if !slices.ContainsFunc(d.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == "scaler" &&
			e.Subresource == "scale"
	}) {
		t.Errorf("the scaler does not own what it set: %+v", d.ManagedFields)
	}
}
