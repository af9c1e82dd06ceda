package resourcetest

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/servertest"
)

// A Pod has its node's zone and region as labels from the moment that it has the node, be it bound, bound by the older
// resource or made there.
func testTopologyLabels(t *testing.T, s *servertest.Server) {
	ctx, ns := t.Context(), s.Namespace(t, "topology")
	const zone, region = corev1.LabelTopologyZone, corev1.LabelTopologyRegion
	room := corev1.ResourceList{"pods": resource.MustParse("10"), "cpu": resource.MustParse("1"),
		"memory": resource.MustParse("1Gi")}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "topology", Labels: map[string]string{zone: "z", region: "r",
			"topology.kubernetes.io/rack": "1"}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
	nodes := s.Client.CoreV1().Nodes()
	must[*corev1.Node](t, "creating")(nodes.Create(ctx, node, metav1.CreateOptions{}))
	pods := s.Client.CoreV1().Pods(ns)
	for name, row := range map[string]struct {
		labels, want map[string]string
		node         string
		bind         func(*corev1.Binding) error
	}{
		"bound": {labels: map[string]string{"a": "b", zone: "mine"},
			want: map[string]string{"a": "b", zone: "z", region: "r"},
			bind: func(b *corev1.Binding) error { return pods.Bind(ctx, b, metav1.CreateOptions{}) }},
		"bound-as-before": {want: map[string]string{zone: "z", region: "r"},
			bind: func(b *corev1.Binding) error {
				return s.Client.CoreV1().RESTClient().Post().Namespace(ns).Resource("bindings").Body(b).Do(ctx).Error()
			}},
		"made-there": {node: "topology", want: map[string]string{zone: "z", region: "r"}},
		"waits":      {labels: map[string]string{"a": "b"}, want: map[string]string{"a": "b"}},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: row.labels}, Spec: corev1.PodSpec{
			NodeName: row.node, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		must[*corev1.Pod](t, "creating")(pods.Create(ctx, pod, metav1.CreateOptions{}))
		if row.bind != nil {
			binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
				Target: corev1.ObjectReference{Kind: "Node", Name: "topology"}}
			if err := row.bind(binding); err != nil {
				t.Fatal(err)
			}
		}
		got := must[*corev1.Pod](t, "reading")(pods.Get(ctx, name, metav1.GetOptions{}))
		if !maps.Equal(got.Labels, row.want) {
			t.Errorf("%s has the labels %v, want %v", name, got.Labels, row.want)
		}
	}
	must[any](t, "deleting")(nil, nodes.Delete(ctx, "topology", metav1.DeleteOptions{}))
}
