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
	deploymentNodes   = 100
	deploymentImage   = "keelson.dev/hello:1"
	deploymentUpdated = "keelson.dev/hello:2"
)

// fleet is a number of Deployments of equal size.
type fleet struct{ deployments, replicas int }

// BenchmarkDeployment takes 50 Deployments of 100 Pods through their life on simulated nodes, and one of 10,000: the
// nodes' own requests are part of the apiserver's cost, their own CPU time is not counted.
func BenchmarkDeployment(b *testing.B) {
	for _, row := range []struct {
		fleet
		nodes int
	}{{fleet{deployments: 50, replicas: 100}, deploymentNodes}, {fleet{deployments: 1, replicas: 10000}, 150}} {
		b.Run(fmt.Sprintf("%dx%d", row.deployments, row.replicas), func(b *testing.B) {
			measureLife(b, row.nodes, row.deployments*row.replicas, phase{"Create", row.create},
				phase{"RollingUpdate", row.update}, phase{"CascadeDelete", row.delete})
		})
	}
}

func (f fleet) create(b *testing.B, client kubernetes.Interface) {
	each(b, f.deployments, func(ctx context.Context, i int) error {
		labels := map[string]string{"app": fmt.Sprint("web-", i)}
		count := int32(f.replicas)
		_, err := client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: labels["app"]},
			Spec: appsv1.DeploymentSpec{
				Replicas: &count, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: podSpec(deploymentImage)},
			},
		}, metav1.CreateOptions{})
		return err
	})
	f.await(b, client)
}

func (f fleet) update(b *testing.B, client kubernetes.Interface) {
	each(b, f.deployments, func(ctx context.Context, i int) error {
		d, err := client.AppsV1().Deployments(namespace).Get(ctx, fmt.Sprint("web-", i), metav1.GetOptions{})
		if err != nil {
			return err
		}
		d.Spec.Template.Spec.Containers[0].Image = deploymentUpdated
		_, err = client.AppsV1().Deployments(namespace).Update(ctx, d, metav1.UpdateOptions{})
		return err
	})
	f.await(b, client)
}

func (f fleet) await(b *testing.B, client kubernetes.Interface) {
	b.Helper()
	awaitObjects(b, objects(client.AppsV1().RESTClient(), "deployments"), &appsv1.Deployment{}, f.deployments,
		func(d *appsv1.Deployment) bool {
			s := d.Status
			want := int32(f.replicas)
			return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want &&
				s.AvailableReplicas == want && s.Replicas == want
		})
}

func (f fleet) delete(b *testing.B, client kubernetes.Interface) {
	background := metav1.DeletePropagationBackground
	each(b, f.deployments, func(ctx context.Context, i int) error {
		return client.AppsV1().Deployments(namespace).Delete(ctx, fmt.Sprint("web-", i),
			metav1.DeleteOptions{PropagationPolicy: &background})
	})
	awaitNoPods(b, client)
}
