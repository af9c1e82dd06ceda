package resourcetest

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// DEP-185, DEP-186, DEP-211: one stored object is read and written in both versions, and neither loses what the other
// says.
func testAutoscalers(t *testing.T, s *servertest.Server) {
	ctx, ns := t.Context(), s.Namespace(t, "autoscalers")
	v1, v2 := s.Client.AutoscalingV1().HorizontalPodAutoscalers(ns),
		s.Client.AutoscalingV2().HorizontalPodAutoscalers(ns)
	must[*autoscalingv1.HorizontalPodAutoscaler](t, "creating")(v1.Create(ctx, &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "frontend-scaler"},
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{Kind: "ReplicaSet", Name: "frontend"},
			MinReplicas:    ptr.To[int32](3), MaxReplicas: 10, TargetCPUUtilizationPercentage: ptr.To[int32](50)},
	}, metav1.CreateOptions{}))
	read := must[*autoscalingv2.HorizontalPodAutoscaler](t, "reading")(v2.Get(ctx, "frontend-scaler",
		metav1.GetOptions{}))
	if len(read.Spec.Metrics) != 1 || *read.Spec.Metrics[0].Resource.Target.AverageUtilization != 50 ||
		*read.Spec.MinReplicas != 3 || read.Spec.MaxReplicas != 10 || read.Generation != 1 {
		t.Errorf("in v2: %+v", read.Spec)
	}
	// What only v2 has fields for.
	patch := `{"spec":{"behavior":{"scaleDown":{"selectPolicy":"Disabled"}},"metrics":[
		{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}},
		{"type":"External","external":{"metric":{"name":"queue"},"target":{"type":"AverageValue","averageValue":"30"}}}]}}`
	read = must[*autoscalingv2.HorizontalPodAutoscaler](t, "patching")(v2.Patch(ctx, "frontend-scaler",
		types.MergePatchType, []byte(patch), metav1.PatchOptions{}))
	if read.Generation != 2 {
		t.Errorf("generation %d, want 2", read.Generation)
	}
	older := must[*autoscalingv1.HorizontalPodAutoscaler](t, "reading")(v1.Get(ctx, "frontend-scaler",
		metav1.GetOptions{}))
	if !strings.Contains(older.Annotations["autoscaling.alpha.kubernetes.io/metrics"], `"queue"`) ||
		!strings.Contains(older.Annotations["autoscaling.alpha.kubernetes.io/behavior"], `"Disabled"`) {
		t.Errorf("in v1: %v", older.Annotations)
	}
	older.Spec.MaxReplicas = 12
	must[*autoscalingv1.HorizontalPodAutoscaler](t, "updating")(v1.Update(ctx, older, metav1.UpdateOptions{}))
	after := must[*autoscalingv2.HorizontalPodAutoscaler](t, "reading")(v2.Get(ctx, "frontend-scaler",
		metav1.GetOptions{}))
	read.Spec.MaxReplicas = 12
	if !apiequality.Semantic.DeepEqual(after.Spec, read.Spec) || after.Generation != 3 || len(after.Annotations) != 0 {
		t.Errorf("after a write in v1: %+v, annotations %v, want %+v", after.Spec, after.Annotations, read.Spec)
	}
	testAutoscalerStatus(t, s, ns, after)
	_, err := v1.Patch(ctx, "frontend-scaler", types.MergePatchType, []byte(`{"spec":{"maxReplicas":2}}`),
		metav1.PatchOptions{})
	refusedAt(t, err, "spec.maxReplicas")
}

// testAutoscalerStatus writes the status in one version and applies in the other.
func testAutoscalerStatus(t *testing.T, s *servertest.Server, ns string, a *autoscalingv2.HorizontalPodAutoscaler) {
	t.Helper()
	ctx := t.Context()
	v1, v2 := s.Client.AutoscalingV1().HorizontalPodAutoscalers(ns),
		s.Client.AutoscalingV2().HorizontalPodAutoscalers(ns)
	a.Status.CurrentReplicas, a.Spec.MaxReplicas = 4, 99
	a.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: "AbleToScale", Status: "True"}}
	a = must[*autoscalingv2.HorizontalPodAutoscaler](t, "writing the status")(v2.UpdateStatus(ctx, a,
		metav1.UpdateOptions{}))
	if a.Spec.MaxReplicas != 12 || a.Status.CurrentReplicas != 4 {
		t.Errorf("written: %+v, %+v", a.Spec, a.Status)
	}
	apply := func() *autoscalingv1.HorizontalPodAutoscaler {
		t.Helper()
		return must[*autoscalingv1.HorizontalPodAutoscaler](t, "applying")(v1.Patch(ctx, a.Name, types.ApplyPatchType,
			[]byte(`{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"`+a.Name+
				`"},"spec":{"maxReplicas":20,"scaleTargetRef":{"kind":"ReplicaSet","name":"frontend"}}}`),
			metav1.PatchOptions{FieldManager: "applier", Force: ptr.To(true)}))
	}
	first, second := apply(), apply()
	if first.ResourceVersion != second.ResourceVersion || second.Spec.MaxReplicas != 20 {
		t.Errorf("applied twice: %s, %s, %+v", first.ResourceVersion, second.ResourceVersion, second.Spec)
	}
	got := must[*autoscalingv2.HorizontalPodAutoscaler](t, "reading")(v2.Get(ctx, a.Name, metav1.GetOptions{}))
	if len(got.Spec.Metrics) != 2 || len(got.Status.Conditions) != 1 || got.Spec.Behavior == nil {
		t.Errorf("after applying in v1: %+v, %+v", got.Spec, got.Status)
	}
}
