package app

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/nodeagent/internal/podnetwork"
	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

// trimNode drops only what is never read of other Nodes.
func TestSlimNode(t *testing.T) {
	full := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", CreationTimestamp: metav1.NewTime(
		time.Unix(1, 0)), Labels: map[string]string{"a": "b"}},
		Spec: corev1.NodeSpec{PodCIDR: "10.244.1.0/24", PodCIDRs: []string{"10.244.1.0/24"}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
			Images:          []corev1.ContainerImage{{Names: []string{"x"}}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure}, {Type: corev1.NodeReady,
				Status: corev1.ConditionUnknown, LastHeartbeatTime: metav1.NewTime(time.Unix(2, 0))}}},
	}
	got, err := trimNode(full)
	if err != nil {
		t.Fatal(err)
	}
	trimmed := got.(*corev1.Node)
	if want := podnetwork.Of(full); !reflect.DeepEqual(podnetwork.Of(trimmed), want) || !want.Silent ||
		want.Created.IsZero() || want.UID == "" {
		t.Errorf("the network knows %+v of %+v", podnetwork.Of(trimmed), want)
	}
	var peers plan.Peers
	if peers.Set(full); peers.Set(trimmed) {
		t.Error("the proxy knows another node")
	}
	if len(trimmed.Labels) > 0 || len(trimmed.Status.Images) > 0 || len(trimmed.Status.Conditions) != 1 ||
		!trimmed.Status.Conditions[0].LastHeartbeatTime.IsZero() {
		t.Errorf("%+v is kept", trimmed)
	}
}
