// Package clusterdns installs CoreDNS, which answers for the names of Services and Pods.
package clusterdns

import (
	"context"
	_ "embed"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"keelson.dev/cli/internal/manifest"
)

// template is also that of the sub-chart coredns.
//
//go:embed coredns.yaml
var template string

// Name and Namespace say where the Deployment is.
const (
	Name      = "coredns"
	Namespace = metav1.NamespaceSystem
)

// objects renders what cluster DNS consists of, in the order in which it is made.
func objects(in Input) ([]*unstructured.Unstructured, error) {
	return manifest.Render("cluster DNS", template, map[string]any{
		"Values": values(in), "Release": map[string]any{"Service": manifest.FieldManager},
	})
}

// Apply installs or updates cluster DNS, and returns the objects that it leaves alone because others have changed
// them. It never changes an existing Corefile.
func Apply(ctx context.Context, client dynamic.Interface, in Input) (left []string, err error) {
	all, err := objects(in)
	if err != nil {
		return nil, err
	}
	for _, object := range all {
		err := apply(ctx, client, object)
		if apierrors.IsConflict(err) {
			left = append(left, object.GetKind()+" "+object.GetName())
		} else if err != nil {
			return left, fmt.Errorf("applying %s %s of cluster DNS: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return left, nil
}

func apply(ctx context.Context, client dynamic.Interface, object *unstructured.Unstructured) error {
	if object.GetKind() == "ConfigMap" {
		_, err := manifest.Resource(client, object).Create(ctx, object,
			metav1.CreateOptions{FieldManager: manifest.FieldManager})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	err := manifest.Apply(ctx, client, object)
	if !apierrors.IsConflict(err) || object.GetKind() != "Deployment" {
		return err
	}
	// A Deployment that others scale is still ours to renew.
	unstructured.RemoveNestedField(object.Object, "spec", "replicas")
	return manifest.Apply(ctx, client, object)
}
