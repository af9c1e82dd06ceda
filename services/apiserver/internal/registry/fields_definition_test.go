package registry_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"keelson.dev/services/apiserver/internal/servertest"
)

// definitionFields is how the names of a definition's fields begin.
const definitionFields = "apiextensions."

// widgets is a definition that is good. Of versions with the same schema the library tells elsewhere what is wrong.
var widgets = map[string]any{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": map[string]any{"name": "widgets.example.com"},
	"spec": map[string]any{
		"group": "example.com", "scope": "Namespaced",
		"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
		"versions": []any{
			map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}},
			map[string]any{"name": "v2", "served": true, "storage": false,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "title": "A widget"}}},
		},
	},
}

// What is said to be refused in a CustomResourceDefinition is refused by a server with these words.
func TestFieldsOfDefinitionsThatAreRefused(t *testing.T) {
	client, err := dynamic.NewForConfig(servertest.Start(t).ConfigAs(servertest.Admin))
	if err != nil {
		t.Fatal(err)
	}
	definitions := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	try := func(content map[string]any) error {
		_, err := definitions.Create(t.Context(), &unstructured.Unstructured{Object: content},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := try(runtime.DeepCopyJSON(widgets)); err != nil {
		t.Fatalf("a definition that is good: %v", err)
	}
	known, tried := classification(t), 0
	visit(reflect.TypeFor[apiextensionsv1.CustomResourceDefinition](), nil, nil, func(p place) {
		c := known[p.name]
		if !c.is(refused) {
			return
		}
		tried++
		err := try(with(runtime.DeepCopyJSON(widgets), p.steps, something(p.of)).(map[string]any))
		if !refusedFor(err, p, c.reason) {
			t.Errorf("%s (%s) is not refused with %q, but with: %v", p, p.name, c.reason, err)
		}
	})
	if tried == 0 {
		t.Error("no field was tried")
	}
}

// refusedFor reports whether the server refuses the field for the reason.
func refusedFor(err error, p place, reason string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return strings.HasPrefix(p.String(), cause.Field) && strings.Contains(cause.Message, reason)
	})
}
