package resourcetest

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// What would keep the server busy for seconds, or break it off, is refused in one sentence before anything works on it.
func testBounds(t *testing.T, s *servertest.Server) {
	ctx, ns := t.Context(), s.Namespace(t, "bounds")
	pods := s.Client.CoreV1().Pods(ns)
	must[*corev1.Pod](t, "creating")(pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}, metav1.CreateOptions{}))
	deep := strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000)
	const tooDeep = "the body nests lists and objects more than 100 deep"
	for name, row := range map[string]struct {
		kind        types.PatchType
		patch, want string
	}{
		"a deep merge":           {types.MergePatchType, deep, tooDeep},
		"a deep strategic merge": {types.StrategicMergePatchType, deep, tooDeep},
		"a deep JSON patch": {types.JSONPatchType, `[{"op":"add","path":"/metadata/labels","value":` + deep + `}]`,
			tooDeep},
		"a deep application": {types.ApplyPatchType, strings.Repeat("- ", 9000) + "a", tooDeep},
		"a map for a name": {types.StrategicMergePatchType, `{"spec":{"containers":[{"name":{}}]}}`,
			"spec.containers[0].name: must be a string or a number"},
	} {
		options := metav1.PatchOptions{}
		if row.kind == types.ApplyPatchType {
			options.FieldManager = "m"
		}
		_, err := pods.Patch(ctx, "web", row.kind, []byte(row.patch), options)
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want a 400: %s", name, err, row.want)
		}
	}
	err := s.Client.CoreV1().RESTClient().Post().Namespace(ns).Resource("configmaps").SetHeader("Content-Type",
		"application/json").
		Body([]byte(deep)).Do(ctx).Error()
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), tooDeep) {
		t.Errorf("a deep object: %v", err)
	}
	directives := `{"metadata":{"finalizers":["a/b"` + strings.Repeat(`,"a/b"`, 20_000) + `]}}`
	if _, err = pods.Patch(ctx, "web", types.StrategicMergePatchType, []byte(directives),
		metav1.PatchOptions{}); !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("20,000 elements: %v, want a 413", err)
	}
	long := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "long"}}
	for i := range 1001 {
		long.Finalizers = append(long.Finalizers, fmt.Sprintf("example.com/f%d", i))
	}
	_, err = s.Client.CoreV1().ConfigMaps(ns).Create(ctx, long, metav1.CreateOptions{})
	refusedAt(t, err, "metadata.finalizers")
	long.Finalizers = long.Finalizers[:1000]
	must[*corev1.ConfigMap](t, "1000 finalizers")(s.Client.CoreV1().ConfigMaps(ns).Create(ctx, long,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
}

// The largest Pod that is accepted can be reported on and deleted: 200 containers, nearly 512 KiB, and all that a node
// says of each.
func testLargestPod(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	pods := s.Client.CoreV1().Pods(s.Namespace(t, "largest"))
	large := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Spec: corev1.PodSpec{NodeName: "n"}}
	for i := range 200 {
		name := fmt.Sprintf("c%d", i)
		large.Spec.Containers = append(large.Spec.Containers, corev1.Container{
			Name: name, Image: "registry.example.com/" + strings.Repeat("i", 200),
			Args: []string{strings.Repeat("x", 1950)},
		})
	}
	one := large.DeepCopy()
	one.Spec.Containers = append(one.Spec.Containers, corev1.Container{Name: "one-more", Image: "i"})
	_, err := pods.Create(ctx, one, metav1.CreateOptions{})
	refusedAt(t, err, "spec")
	stored := must[*corev1.Pod](t, "creating")(pods.Create(ctx, large, metav1.CreateOptions{}))
	if size := stored.Size(); size < 450<<10 || size > 512<<10 {
		t.Fatalf("the Pod takes %d bytes, that is not nearly 512 KiB", size)
	}
	stored.Status.Phase = corev1.PodRunning
	for _, c := range stored.Spec.Containers {
		ended := &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: strings.Repeat("m", 1000),
			ContainerID: "containerd://" + strings.Repeat("0", 64)}
		stored.Status.ContainerStatuses = append(stored.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image + "@sha256:" + strings.Repeat("0", 64),
			ContainerID: ended.ContainerID, RestartCount: 1,
			State:                corev1.ContainerState{Terminated: ended},
			LastTerminationState: corev1.ContainerState{Terminated: ended}, Started: ptr.To(false),
		})
	}
	must[*corev1.Pod](t, "reporting")(pods.UpdateStatus(ctx, stored, metav1.UpdateOptions{}))
	if err := pods.Delete(ctx, "large", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting: %v", err)
	}
	now := int64(0)
	if err := pods.Delete(ctx, "large", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatalf("deleting for good: %v", err)
	}
}
