package bench

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

// daemonNodes is how many nodes the DaemonSet runs on.
const daemonNodes = 5000

// BenchmarkDaemonSet takes a DaemonSet on 5,000 simulated nodes through its life. During the update a tenth of its Pods
// may be unavailable.
func BenchmarkDaemonSet(b *testing.B) {
	measureLife(b, daemonNodes, daemonNodes, phase{"Create", createDaemonSet},
		phase{"RollingUpdate", updateDaemonSet}, phase{"CascadeDelete", deleteDaemonSet})
}

func createDaemonSet(b *testing.B, client kubernetes.Interface) {
	labels, tenth, none := map[string]string{"app": "agent"}, intstr.FromString("10%"), intstr.FromInt32(0)
	if _, err := client.AppsV1().DaemonSets(namespace).Create(b.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: podSpec(deploymentImage)},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &tenth, MaxSurge: &none}},
		},
	}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	awaitDaemonSet(b, client)
}

func updateDaemonSet(b *testing.B, client kubernetes.Interface) {
	set, err := client.AppsV1().DaemonSets(namespace).Get(b.Context(), "agent", metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	set.Spec.Template.Spec.Containers[0].Image = deploymentUpdated
	if _, err := client.AppsV1().DaemonSets(namespace).Update(b.Context(), set, metav1.UpdateOptions{}); err != nil {
		b.Fatal(err)
	}
	awaitDaemonSet(b, client)
}

func awaitDaemonSet(b *testing.B, client kubernetes.Interface) {
	b.Helper()
	awaitObjects(b, objects(client.AppsV1().RESTClient(), "daemonsets"), &appsv1.DaemonSet{}, 1,
		func(set *appsv1.DaemonSet) bool {
			s := set.Status
			return s.ObservedGeneration >= set.Generation && s.DesiredNumberScheduled == daemonNodes &&
				s.UpdatedNumberScheduled == daemonNodes && s.NumberAvailable == daemonNodes
		})
}

func deleteDaemonSet(b *testing.B, client kubernetes.Interface) {
	background := metav1.DeletePropagationBackground
	if err := client.AppsV1().DaemonSets(namespace).Delete(b.Context(), "agent",
		metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		b.Fatal(err)
	}
	awaitNoPods(b, client)
}
