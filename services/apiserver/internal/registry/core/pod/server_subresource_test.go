package pod_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

func binding(name, node string) *corev1.Binding {
	return &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node",
		Name: node}}
}

func bind(t *testing.T, pods typedcorev1.PodInterface, name, node string) {
	t.Helper()
	must(t, pods.Bind(t.Context(), binding(name, node), metav1.CreateOptions{}))
}

// POD-025 POD-026 POD-108 SAF-121
func testBind(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx())
	p.Status.NominatedNodeName = "node-2"
	_, err := pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	must(t, err)
	bind(t, pods, "nginx", "node-1")
	bound := get(t, pods, "nginx")
	if bound.Spec.NodeName != "node-1" || bound.Status.NominatedNodeName != "" || bound.Generation != 1 ||
		len(bound.Status.Conditions) != 1 || bound.Status.Conditions[0].Type != corev1.PodScheduled ||
		bound.Status.Conditions[0].Status != corev1.ConditionTrue ||
		bound.Status.Conditions[0].LastTransitionTime.IsZero() {
		t.Errorf("bound %+v", bound)
	}
	err = pods.Bind(t.Context(), binding("nginx", "node-2"), metav1.CreateOptions{})
	wantError(t, err, apierrors.IsConflict, `pod nginx is already assigned to node "node-1"`)
}

func testLegacyBind(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx())
	b := binding("nginx", "node-1")
	b.Annotations = map[string]string{"example.com/by": "hand"}
	must(t, c.Client.CoreV1().RESTClient().Post().Namespace(p.Namespace).Resource("bindings").Body(b).Do(
		t.Context()).Error())
	if bound := get(t, pods, "nginx"); bound.Spec.NodeName != "node-1" ||
		bound.Annotations["example.com/by"] != "hand" {
		t.Errorf("bound %+v", bound)
	}
}

// POD-030: what waits, goes away, is another Pod or does not exist is not bound.
func testBindRefused(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	bind := func(b *corev1.Binding, options metav1.CreateOptions) error { return pods.Bind(t.Context(), b, options) }
	create(t, pods, nginx(func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}} }))
	wantError(t, bind(binding("nginx", "node-1"), metav1.CreateOptions{}), apierrors.IsConflict,
		"pod nginx has non-empty .spec.schedulingGates")
	wantError(t, bind(binding("nobody", "node-1"), metav1.CreateOptions{}), apierrors.IsNotFound,
		`pods "nobody" not found`)
	wantError(t, bind(binding("nginx", ""), metav1.CreateOptions{}), apierrors.IsInvalid, "target.name: Required value")
	another := binding("nginx", "node-1")
	another.Target.Kind = "Machine"
	wantError(t, bind(another, metav1.CreateOptions{}), apierrors.IsInvalid,
		`target.kind: Unsupported value: "Machine"`)

	p := create(t, pods, nginx(func(p *corev1.Pod) { p.Name = "free" }))
	stale := binding("free", "node-1")
	stale.UID = "other"
	wantError(t, bind(stale, metav1.CreateOptions{}), apierrors.IsConflict, "UID")
	must(t, bind(binding("free", "node-1"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	if unbound := get(t, pods, "free"); unbound.Spec.NodeName != "" {
		t.Error("a dry run bound the Pod")
	}
	create(t, pods, nginx(func(p *corev1.Pod) { p.Name, p.Finalizers = "leaving", []string{"example.com/a"} }))
	must(t, pods.Delete(t.Context(), "leaving", metav1.DeleteOptions{}))
	wantError(t, bind(binding("leaving", "node-1"), metav1.CreateOptions{}), apierrors.IsConflict,
		"pod leaving is being deleted, cannot be assigned to a host")
	// What a binding brings along is held to what updates are held to.
	mirror := binding("free", "node-1")
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	wantError(t, bind(mirror, metav1.CreateOptions{}), apierrors.IsInvalid,
		"may not remove or add mirror pod annotation")
	mirror.Annotations = map[string]string{"large": strings.Repeat("x", 256<<10)}
	wantError(t, bind(mirror, metav1.CreateOptions{}), apierrors.IsInvalid, "metadata.annotations: Too long")
	mirror.Annotations, mirror.Labels = nil, map[string]string{"a b": ""}
	wantError(t, bind(mirror, metav1.CreateOptions{}), apierrors.IsInvalid, "metadata.labels: Invalid value")

	exact := binding("free", "node-1")
	exact.UID = p.UID
	must(t, bind(exact, metav1.CreateOptions{}))
}

// SAF-001 SAF-010 SAF-011 SAF-012 SAF-013 POD-252 POD-257
func testEphemeralContainers(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	create(t, pods, nginx(onNode))
	patch := []byte(
		`{"spec":{"ephemeralContainers":[{"name":"debug","image":"busybox","targetContainerName":"nginx"}]}}`)
	p, err := pods.Patch(t.Context(), "nginx", types.StrategicMergePatchType, patch, metav1.PatchOptions{},
		"ephemeralcontainers")
	must(t, err)
	if len(p.Spec.EphemeralContainers) != 1 || p.Spec.EphemeralContainers[0].ImagePullPolicy != corev1.PullAlways ||
		p.Generation != 2 {
		t.Errorf("patched %+v", p.Spec)
	}
	p.Spec.EphemeralContainers[0].Image = "other"
	_, err = pods.UpdateEphemeralContainers(t.Context(), "nginx", p, metav1.UpdateOptions{})
	wantError(t, err, apierrors.IsInvalid, `existing ephemeral containers "debug" may not be changed`)
	p.Spec.EphemeralContainers = nil
	_, err = pods.Update(t.Context(), p, metav1.UpdateOptions{})
	wantError(t, err, apierrors.IsInvalid, "pod updates may not change fields other than")
	raw, err := pods.Get(t.Context(), "nginx", metav1.GetOptions{})
	must(t, err)
	if len(raw.Spec.EphemeralContainers) != 1 {
		t.Errorf("the container is gone: %+v", raw.Spec)
	}
}

// DEP-214: resources change by /resize only, in strategic patches as kubectl sends them.
func testResize(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	created := create(t, pods, nginx(onNode, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	}))
	patch := []byte(`{"spec":{"containers":[{"name":"nginx","resources":{"requests":{"cpu":"150m"}}}]}}`)
	_, err := pods.Patch(t.Context(), "nginx", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	wantError(t, err, apierrors.IsInvalid, "pod updates may not change fields other than")
	p, err := pods.Patch(t.Context(), "nginx", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "resize")
	must(t, err)
	if request := p.Spec.Containers[0].Resources.Requests.Cpu().String(); request != "150m" ||
		p.Generation != created.Generation+1 {
		t.Errorf("requests %s, generation %d", request, p.Generation)
	}
	p.Spec.Containers[0].Resources.Requests = nil
	_, err = pods.UpdateResize(t.Context(), "nginx", p, metav1.UpdateOptions{})
	wantError(t, err, apierrors.IsInvalid, "spec.containers[0].resources.requests: Forbidden: resource requests "+
		"cannot be removed")
}
