// Package sample is the Deployment that `keel up` leaves running.
package sample

import (
	"context"
	_ "embed"
	"fmt"

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

const fieldManager = "keel"

// Apply creates the sample or applies its fields. It forces nothing: a field that another manager has changed is a
// conflict. Other changes by users stay.
func Apply(ctx context.Context, client kubernetes.Interface) error {
	force := false
	_, err := client.AppsV1().Deployments(Namespace).Patch(ctx, Name, types.ApplyYAMLPatchType, Manifest,
		metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
	if err != nil {
		return fmt.Errorf("applying the sample Deployment: %w", err)
	}
	return nil
}

// Exists reports whether the sample already exists, even if others have applied or changed it.
func Exists(ctx context.Context, client kubernetes.Interface) (bool, error) {
	list, err := client.AppsV1().Deployments(Namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" +
		Name})
	if err != nil {
		return false, fmt.Errorf("looking for the sample Deployment: %w", err)
	}
	return len(list.Items) > 0, nil
}
