// Package manifest renders what keel installs on a mesh from templates of YAML, and applies it.
package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"text/template"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// FieldManager is the field manager of the objects that keel installs.
const FieldManager = "keel"

// Render fills a template and returns its objects, in their order.
func Render(name, text string, values map[string]any) ([]*unstructured.Unstructured, error) {
	parsed, err := template.New(name).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of %s: %w", name, err)
	}
	var filled bytes.Buffer
	if err := parsed.Option("missingkey=error").Execute(&filled, values); err != nil {
		return nil, fmt.Errorf("rendering the manifest of %s: %w", name, err)
	}
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(&filled, filled.Len())
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("parsing the manifest of %s: %w", name, err)
		}
		all = append(all, object)
	}
}

// Apply applies the fields of an object. If another field manager has changed one of them, it returns a conflict.
func Apply(ctx context.Context, client dynamic.Interface, object *unstructured.Unstructured) error {
	_, err := Resource(client, object).Apply(ctx, object.GetName(), object,
		metav1.ApplyOptions{FieldManager: FieldManager})
	return err
}

// Resource is where an object is.
func Resource(client dynamic.Interface, object *unstructured.Unstructured) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	resource := client.Resource(plural)
	if object.GetNamespace() == "" {
		return resource
	}
	return resource.Namespace(object.GetNamespace())
}
