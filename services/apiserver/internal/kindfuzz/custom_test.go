package kindfuzz

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// widgets are a kind that a CustomResourceDefinition makes, decoded, defaulted and checked as the library does it.
func widgets(t testing.TB) *kind {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(registryFolder, "testdata/kinds/widgets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(content, definition); err != nil {
		t.Fatal(err)
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema, props, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		t.Fatal(err)
	}
	kindOf := schema.GroupVersionKind{Group: definition.Spec.Group, Version: "v1", Kind: definition.Spec.Names.Kind}
	scale := &apiextensions.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas",
		StatusReplicasPath: ".status.replicas"}
	rules := customresource.NewStrategy(crdserverscheme.NewUnstructuredObjectTyper(), true, kindOf, validator,
		validator, structural, &apiextensions.CustomResourceSubresourceStatus{}, scale, nil)
	example := &unstructured.Unstructured{Object: exampleIn(t, filepath.Join(registryFolder,
		"testdata/kinds/widgets.custom.example.com.yaml"))}
	example.SetGroupVersionKind(kindOf)
	read := func(data []byte) (runtime.Object, error) { return decodeWidget(data, kindOf, structural) }
	return &kind{name: definition.Name, example: example, object: rules,
		status: customresource.NewStatusStrategy(rules),
		encodings: []encoding{
			{"JSON", func(obj runtime.Object) ([]byte, error) {
				return runtime.Encode(unstructured.UnstructuredJSONScheme, obj)
			}, read},
			{"YAML", func(obj runtime.Object) ([]byte, error) {
				return yaml.Marshal(obj.(*unstructured.Unstructured).Object)
			}, func(data []byte) (runtime.Object, error) {
				inJSON, err := yaml.YAMLToJSON(data)
				if err != nil {
					return nil, err
				}
				return read(inJSON)
			}},
		}}
}

// decodeWidget reads an object, gives it its defaults, and takes from it what its schema does not have.
func decodeWidget(data []byte, kindOf schema.GroupVersionKind, structural *structuralschema.Structural) (runtime.Object,
	error) {
	decoded, _, err := unstructured.UnstructuredJSONScheme.Decode(data, &kindOf, nil)
	if err != nil {
		return nil, err
	}
	obj, ok := decoded.(*unstructured.Unstructured)
	if !ok || obj.GroupVersionKind() != kindOf {
		return nil, runtime.NewNotRegisteredErrForKind("fuzz", decoded.GetObjectKind().GroupVersionKind())
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(obj.Object, structural)
	defaulting.Default(obj.Object, structural)
	meta, found, err := objectmeta.GetObjectMeta(obj.Object, false)
	if err != nil {
		return nil, err
	}
	pruning.Prune(obj.Object, structural, true)
	if found {
		if err := objectmeta.SetObjectMeta(obj.Object, meta); err != nil {
			return nil, err
		}
	}
	return obj, nil
}
