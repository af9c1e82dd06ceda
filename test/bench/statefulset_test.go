package bench

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	statefulSets     = 20
	statefulReplicas = 20
	statefulPods     = statefulSets * statefulReplicas
)

// BenchmarkStatefulSet takes 20 StatefulSets of 20 Pods through their life on simulated nodes, in order and all at
// once.
func BenchmarkStatefulSet(b *testing.B) {
	for name, policy := range map[string]appsv1.PodManagementPolicyType{
		"Ordered": appsv1.OrderedReadyPodManagement, "Parallel": appsv1.ParallelPodManagement,
	} {
		create := func(b *testing.B, client kubernetes.Interface) { createStatefulSets(b, client, policy) }
		b.Run(name, func(b *testing.B) {
			measureLife(b, deploymentNodes, statefulPods, phase{"Create", create},
				phase{"RollingUpdate", updateStatefulSets}, phase{"CascadeDelete", deleteStatefulSets})
		})
	}
}

func createStatefulSets(b *testing.B, client kubernetes.Interface, policy appsv1.PodManagementPolicyType) {
	each(b, statefulSets, func(ctx context.Context, i int) error {
		labels := map[string]string{"app": fmt.Sprint("web-", i)}
		count := int32(statefulReplicas)
		_, err := client.AppsV1().StatefulSets(namespace).Create(ctx, &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: labels["app"]},
			Spec: appsv1.StatefulSetSpec{
				Replicas: &count, PodManagementPolicy: policy, ServiceName: "web",
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: podSpec(deploymentImage)},
			},
		}, metav1.CreateOptions{})
		return err
	})
	awaitStatefulSets(b, client)
}

func updateStatefulSets(b *testing.B, client kubernetes.Interface) {
	each(b, statefulSets, func(ctx context.Context, i int) error {
		s, err := client.AppsV1().StatefulSets(namespace).Get(ctx, fmt.Sprint("web-", i), metav1.GetOptions{})
		if err != nil {
			return err
		}
		s.Spec.Template.Spec.Containers[0].Image = deploymentUpdated
		_, err = client.AppsV1().StatefulSets(namespace).Update(ctx, s, metav1.UpdateOptions{})
		return err
	})
	awaitStatefulSets(b, client)
}

func awaitStatefulSets(b *testing.B, client kubernetes.Interface) {
	b.Helper()
	awaitObjects(b, objects(client.AppsV1().RESTClient(), "statefulsets"), &appsv1.StatefulSet{}, statefulSets,
		func(set *appsv1.StatefulSet) bool {
			s := set.Status
			return s.ObservedGeneration >= set.Generation && s.UpdatedReplicas == statefulReplicas &&
				s.AvailableReplicas == statefulReplicas && s.Replicas == statefulReplicas
		})
}

func deleteStatefulSets(b *testing.B, client kubernetes.Interface) {
	background := metav1.DeletePropagationBackground
	each(b, statefulSets, func(ctx context.Context, i int) error {
		return client.AppsV1().StatefulSets(namespace).Delete(ctx, fmt.Sprint("web-", i),
			metav1.DeleteOptions{PropagationPolicy: &background})
	})
	awaitNoPods(b, client)
}
