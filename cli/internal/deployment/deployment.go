// Package deployment waits for a Deployment that keel has made.
package deployment

import (
	"context"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const pollInterval = 250 * time.Millisecond

// Running returns the Pods that really run.
type Running func(context.Context) (map[types.UID]bool, error)

// Name is a Deployment's, with its namespace.
type Name struct{ Namespace, Name string }

// WaitAvailable waits until the Deployment is available, and its Pods really run, and prints its progress.
func WaitAvailable(ctx context.Context, client kubernetes.Interface, name Name, running Running, out io.Writer) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	shown, last := "", "the apiserver does not answer"
	for {
		line, done, err := look(ctx, client, name, running)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil && line != shown {
			fmt.Fprintln(out, "    "+line)
			shown, last = line, line
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf(
				"%s is not available in time: %s; keel explain deployment %[1]s --namespace %[3]s says why",
				name.Name, last, name.Namespace)
		case <-ticker.C:
		}
	}
}

// look compares the API's status with the running Pods.
func look(ctx context.Context, client kubernetes.Interface, name Name, running Running) (line string, done bool,
	err error) {
	deployment, err := client.AppsV1().Deployments(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return "", false, fmt.Errorf("reading Deployment %s: %w", name.Name, err)
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return "", false, fmt.Errorf("reading the selector of Deployment %s: %w", name.Name, err)
	}
	pods, err := client.CoreV1().Pods(name.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return "", false, fmt.Errorf("listing the Pods of Deployment %s: %w", name.Name, err)
	}
	truth, err := running(ctx)
	if err != nil {
		return "", false, err
	}
	live := int32(0)
	for _, pod := range pods.Items {
		if truth[pod.UID] {
			live++
		}
	}
	count := min(deployment.Status.AvailableReplicas, live)
	line = fmt.Sprintf("Deployment %s: %d of %d available", deployment.Name, count, replicas(deployment))
	return line, available(deployment) && live >= replicas(deployment), nil
}

func available(d *appsv1.Deployment) bool {
	if d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas < replicas(d) {
		return false
	}
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}
