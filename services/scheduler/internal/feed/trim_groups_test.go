package feed

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/scheduler/internal/groups"
)

// What is left of Services and controllers selects the same Pods, and little else is left.
func TestTrimGroups(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "g", Labels: map[string]string{"a": "b"},
		Annotations: map[string]string{"big": "x"}}
	labels := map[string]string{"app": "web"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	for kind, o := range map[string]interface{ String() string }{
		groups.Service: &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels, ClusterIP: "x"}},
		groups.ReplicationController: &corev1.ReplicationController{ObjectMeta: meta,
			Spec: corev1.ReplicationControllerSpec{Selector: labels, Template: &corev1.PodTemplateSpec{}}},
		groups.ReplicaSet: &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "x"}}}},
		groups.StatefulSet: &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector,
			ServiceName: "x"}},
	} {
		whole, ok := groups.Of(o)
		object, err := trimGroup(o)
		if err != nil {
			t.Fatal(err)
		}
		cut, _ := groups.Of(object)
		if !ok || cut.Name != whole.Name || cut.Kind != kind || len(cut.Labels) != len(whole.Labels) ||
			whole.Selector != nil && cut.Selector.String() != whole.Selector.String() {
			t.Errorf("%s is %v, before %v", kind, cut, whole)
		}
		left, _ := object.(metav1.Object)
		if left.GetLabels() != nil || left.GetAnnotations() != nil || len(o.String()) > 1000 {
			t.Errorf("%s keeps too much: %s", kind, o)
		}
	}
}

// A Pod that waits keeps which controller it belongs to, if that is one that Pods are spread by.
func TestTrimPodKeepsItsController(t *testing.T) {
	for name, test := range map[string]struct {
		node, version, kind string
		want                int
	}{
		"of a ReplicaSet": {"", "apps/v1", "ReplicaSet", 1},
		"of a Job":        {"", "batch/v1", "Job", 0},
		"with a node":     {"n", "apps/v1", "ReplicaSet", 0},
	} {
		p := fullPod(test.node)
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Thing"},
			{APIVersion: test.version, Kind: test.kind, Name: "g", Controller: new(true)}}
		object, err := trimPod(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := object.(*corev1.Pod).OwnerReferences; len(got) != test.want {
			t.Errorf("a Pod %s keeps %v", name, got)
		}
	}
}

// A Pod with a node keeps what it asks of other Pods, which they see, and not what it asked of nodes.
func TestTrimPodKeepsItsTerms(t *testing.T) {
	p := fullPod("n")
	p.Spec.Affinity.PodAffinity, p.Spec.Affinity.PodAntiAffinity = &corev1.PodAffinity{}, &corev1.PodAntiAffinity{}
	object, _ := trimPod(p)
	if a := object.(*corev1.Pod).Spec.Affinity; a == nil || a.PodAffinity == nil || a.PodAntiAffinity == nil ||
		a.NodeAffinity != nil {
		t.Errorf("keeps %v", a)
	}
	object, _ = trimPod(fullPod("n"))
	if a := object.(*corev1.Pod).Spec.Affinity; a != nil {
		t.Errorf("keeps %v of a Pod that asks nothing of others", a)
	}
}

func TestTrimNamespace(t *testing.T) {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"},
		Annotations: map[string]string{"big": "x"}}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
	object, _ := trimNamespace(n)
	if got := object.(*corev1.Namespace); got.Name != "n" || got.Labels["a"] != "b" || got.Annotations != nil ||
		got.Status.Phase != "" {
		t.Errorf("is %v", got)
	}
}
