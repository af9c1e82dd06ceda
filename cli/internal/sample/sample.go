// Package sample is the Deployment that `keel up` leaves running.
package sample

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Manifest is the sample as a user would write it.
//
//go:embed hello.yaml
var Manifest []byte

// Name and Namespace say where the sample is.
const (
	Name      = "hello"
	Namespace = metav1.NamespaceDefault
)

const (
	fieldManager = "keel"
	pollInterval = 250 * time.Millisecond
)

// Apply creates the sample, or brings back what belongs to it: what users have changed of it beyond that stays.
func Apply(ctx context.Context, client kubernetes.Interface) error {
	force := false
	_, err := client.AppsV1().Deployments(Namespace).Patch(ctx, Name, types.ApplyYAMLPatchType, Manifest,
		metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
	if err != nil {
		return fmt.Errorf("applying the sample Deployment: %w", err)
	}
	return nil
}

// Exists tells whether the sample is there already, applied or changed by whomever.
func Exists(ctx context.Context, client kubernetes.Interface) (bool, error) {
	list, err := client.AppsV1().Deployments(Namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" +
		Name})
	if err != nil {
		return false, fmt.Errorf("looking for the sample Deployment: %w", err)
	}
	return len(list.Items) > 0, nil
}

// Running tells which Pods run in truth.
type Running func(context.Context) (map[types.UID]bool, error)

// WaitAvailable waits until the sample is available, and its Pods really run, and prints its progress.
func WaitAvailable(ctx context.Context, client kubernetes.Interface, running Running, out io.Writer) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	shown := ""
	for {
		line, done, err := look(ctx, client, running)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil && line != shown {
			fmt.Fprintln(out, "    "+line)
			shown = line
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the sample Deployment is not available in time: %s; kubectl describe pods -l "+
				"app=hello, or keel explain pod NAME, says why", shown)
		case <-ticker.C:
		}
	}
}

// look compares what the API says with what runs.
func look(ctx context.Context, client kubernetes.Interface, running Running) (line string, done bool, err error) {
	deployment, err := client.AppsV1().Deployments(Namespace).Get(ctx, Name, metav1.GetOptions{})
	if err != nil {
		return "", false, fmt.Errorf("reading the sample Deployment: %w", err)
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return "", false, fmt.Errorf("reading the sample's selector: %w", err)
	}
	pods, err := client.CoreV1().Pods(Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return "", false, fmt.Errorf("listing the sample's Pods: %w", err)
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
