package servertest_test

import (
	"context"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"keelson.dev/services/apiserver/internal/servertest"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// widgetDefinition is a definition with all that is not said by others of its fields.
func widgetDefinition(t testing.TB) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	const definition = `
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [wd],
    categories: [all, gear]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas,
        labelSelectorPath: .status.selector}
    selectableFields: [{jsonPath: .spec.color}]
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Color, type: string, jsonPath: .spec.color, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: "self.size <= 100", message: "a widget is not larger than 100"}
            properties:
              size: {type: integer, default: 3, description: How large the widget is.}
              color:
                type: string
                maxLength: 20
                x-kubernetes-validations: [{rule: "self == oldSelf", message: "a color stays"}]
              replicas: {type: integer}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties: {replicas: {type: integer}, selector: {type: string}}
`
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(definition), d); err != nil {
		t.Fatal(err)
	}
	return d
}

func definitions(t testing.TB, config *restclient.Config) apiextensionsclient.CustomResourceDefinitionInterface {
	t.Helper()
	client, err := apiextensionsclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.CustomResourceDefinitions()
}

func objects(t testing.TB, config *restclient.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// define makes a definition and returns when its objects are served.
func define(t testing.TB, config *restclient.Config, d *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if _, err := definitions(t, config).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatalf("defining %s: %v", d.Name, err)
	}
	servertest.Eventually(t, "the kind is served", func(ctx context.Context) string {
		return lacks(ctx, definitions(t, config), d.Name, apiextensionsv1.Established)
	})
}

// lacks says what keeps a condition of a definition from being true.
func lacks(ctx context.Context, client apiextensionsclient.CustomResourceDefinitionInterface, name string,
	condition apiextensionsv1.CustomResourceDefinitionConditionType) string {
	d, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	for _, c := range d.Status.Conditions {
		if c.Type == condition && c.Status == apiextensionsv1.ConditionTrue {
			return ""
		}
	}
	return fmt.Sprintf("%v", d.Status.Conditions)
}

// widget is an object with a spec of pairs of fields and values.
func widget(name string, spec ...any) *unstructured.Unstructured {
	fields := map[string]any{}
	for i := 0; i < len(spec); i += 2 {
		fields[spec[i].(string)] = spec[i+1]
	}
	w := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	w.SetGroupVersionKind(widgets.GroupVersion().WithKind("Widget"))
	w.SetName(name)
	return w
}

// field returns what a field of an object holds, as text.
func field(o *unstructured.Unstructured, path ...string) string {
	value, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil || !found {
		return ""
	}
	return fmt.Sprint(value)
}

// schemaOf is the schema of a version's spec.
func schemaOf(d *apiextensionsv1.CustomResourceDefinition, version int) map[string]apiextensionsv1.JSONSchemaProps {
	return d.Spec.Versions[version].Schema.OpenAPIV3Schema.Properties["spec"].Properties
}

// atLeast bounds the size of widgets.
func atLeast(d *apiextensionsv1.CustomResourceDefinition, least float64) {
	size := schemaOf(d, 0)["size"]
	size.Minimum = ptr.To(least)
	schemaOf(d, 0)["size"] = size
}
