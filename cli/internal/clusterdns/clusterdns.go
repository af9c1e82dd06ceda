// Package clusterdns installs CoreDNS, which answers for the names of Services and Pods.
package clusterdns

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"text/template"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// manifest is also the template of the sub-chart coredns.
//
//go:embed coredns.yaml
var manifest string

// Name and Namespace say where the Deployment is.
const (
	Name      = "coredns"
	Namespace = metav1.NamespaceSystem
)

const fieldManager = "keel"

// objects renders what cluster DNS consists of, in the order in which it is made.
func objects(in Input) ([]*unstructured.Unstructured, error) {
	parsed, err := template.New(Name).Parse(manifest)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of cluster DNS: %w", err)
	}
	var text bytes.Buffer
	if err := parsed.Option("missingkey=error").Execute(&text, map[string]any{
		"Values": values(in), "Release": map[string]any{"Service": fieldManager},
	}); err != nil {
		return nil, fmt.Errorf("rendering the manifest of cluster DNS: %w", err)
	}
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(&text, text.Len())
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("parsing the manifest of cluster DNS: %w", err)
		}
		all = append(all, object)
	}
}

// Apply installs cluster DNS or brings what is there up to date, and returns what it leaves as others have made it:
// whatever they have changed, and the Corefile in any case.
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
	plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	resource := client.Resource(plural).Namespace(object.GetNamespace())
	if object.GetKind() == "ConfigMap" {
		_, err := resource.Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager}
	_, err := resource.Apply(ctx, object.GetName(), object, options)
	if !apierrors.IsConflict(err) || object.GetKind() != "Deployment" {
		return err
	}
	// A Deployment that others scale is still ours to renew.
	unstructured.RemoveNestedField(object.Object, "spec", "replicas")
	_, err = resource.Apply(ctx, object.GetName(), object, options)
	return err
}
