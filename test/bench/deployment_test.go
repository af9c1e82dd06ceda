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
	deployments       = 50
	replicas          = 100
	deploymentNodes   = 100
	deploymentPods    = deployments * replicas
	deploymentImage   = "keelson.dev/hello:1"
	deploymentUpdated = "keelson.dev/hello:2"
)

// BenchmarkDeployment takes 50 Deployments of 100 Pods through their life on simulated nodes: the nodes' own requests
// are part of the apiserver's cost, their own CPU time is not counted.
func BenchmarkDeployment(b *testing.B) {
	measureLife(b, deploymentNodes, deploymentPods, phase{"Create", createDeployments},
		phase{"RollingUpdate", updateDeployments}, phase{"CascadeDelete", deleteDeployments})
}

func createDeployments(b *testing.B, client kubernetes.Interface) {
	each(b, deployments, func(ctx context.Context, i int) error {
		labels := map[string]string{"app": fmt.Sprint("web-", i)}
		count := int32(replicas)
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
	awaitRollout(b, client)
}

func updateDeployments(b *testing.B, client kubernetes.Interface) {
	each(b, deployments, func(ctx context.Context, i int) error {
		d, err := client.AppsV1().Deployments(namespace).Get(ctx, fmt.Sprint("web-", i), metav1.GetOptions{})
		if err != nil {
			return err
		}
		d.Spec.Template.Spec.Containers[0].Image = deploymentUpdated
		_, err = client.AppsV1().Deployments(namespace).Update(ctx, d, metav1.UpdateOptions{})
		return err
	})
	awaitRollout(b, client)
}

func awaitRollout(b *testing.B, client kubernetes.Interface) {
	b.Helper()
	awaitObjects(b, objects(client.AppsV1().RESTClient(), "deployments"), &appsv1.Deployment{}, deployments,
		func(d *appsv1.Deployment) bool {
			s := d.Status
			return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == replicas &&
				s.AvailableReplicas == replicas && s.Replicas == replicas
		})
}

func deleteDeployments(b *testing.B, client kubernetes.Interface) {
	background := metav1.DeletePropagationBackground
	each(b, deployments, func(ctx context.Context, i int) error {
		return client.AppsV1().Deployments(namespace).Delete(ctx, fmt.Sprint("web-", i),
			metav1.DeleteOptions{PropagationPolicy: &background})
	})
	awaitNoPods(b, client)
}
