package servertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"keelson.dev/services/apiserver/internal/servertest"
)

// warnings are those of the answers to a client.
type warnings struct {
	mu   sync.Mutex
	text []string
}

// HandleWarningHeader implements restclient.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}

func (w *warnings) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.text, "\n")
}

// What a definition says of its objects holds: each of these would be otherwise without it.
func TestCustomResourceSchemas(t *testing.T) {
	s := servertest.Start(t)
	config := s.ConfigAs(servertest.Admin)
	define(t, config, widgetDefinition(t))
	of := objects(t, config).Resource(widgets).Namespace(metav1.NamespaceDefault)
	for name, test := range map[string]func(*testing.T, *servertest.Server, dynamic.ResourceInterface){
		"Fields": testFieldsOfWidgets, "Rules": testRulesOfWidgets, "Subresources": testSubresourcesOfWidgets,
		"Apply": testApplyOfWidgets, "Selectable": testSelectableWidgets, "Table": testTableOfWidgets,
	} {
		t.Run(name, func(t *testing.T) { test(t, s, of) })
	}
}

// Fields are filled in, kept or dropped as the schema says, and who asks for it is told of those that are dropped.
func testFieldsOfWidgets(t *testing.T, s *servertest.Server, of dynamic.ResourceInterface) {
	w := widget("fields", "unheardOf", "x", "free", map[string]any{"anything": "goes"})
	if _, err := of.Create(t.Context(), w, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err ==
		nil || !strings.Contains(err.Error(), `unknown field "spec.unheardOf"`) {
		t.Errorf("a field that the schema does not know, strictly: %v", err)
	}
	heard := &warnings{}
	warned := s.ConfigAs(servertest.Admin)
	warned.WarningHandler = heard
	made, err := objects(t, warned).Resource(widgets).Namespace(metav1.NamespaceDefault).Create(t.Context(), w,
		metav1.CreateOptions{FieldValidation: metav1.FieldValidationWarn})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(heard.String(), `unknown field "spec.unheardOf"`) {
		t.Errorf("the warnings are %q", heard)
	}
	for path, want := range map[string]string{"size": "3", "unheardOf": "", "free": "map[anything:goes]"} {
		if got := field(made, "spec", path); got != want {
			t.Errorf("spec.%s is %q, want %q", path, got, want)
		}
	}
	if _, err := of.Create(t.Context(), widget("text", "size", "large"), metav1.CreateOptions{}); !apierrors.IsInvalid(
		err) || !strings.Contains(err.Error(), "spec.size") {
		t.Errorf("a size that is a text: %v", err)
	}
}

// Rules of CEL hold for what is written; what was there before a bound may stay as it is.
func testRulesOfWidgets(t *testing.T, s *servertest.Server, of dynamic.ResourceInterface) {
	for size, allowed := range map[int64]bool{100: true, 101: false} {
		_, err := of.Create(t.Context(), widget(fmt.Sprint("of-", size), "size", size), metav1.CreateOptions{})
		if allowed && err != nil || !allowed && (!apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), "a widget is not larger than 100")) {
			t.Errorf("size %d: %v", size, err)
		}
	}
	if _, err := of.Create(t.Context(), widget("small", "size", int64(2), "color", "red"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := func(spec string) error {
		_, err := of.Patch(t.Context(), "small", "application/merge-patch+json", []byte(`{"spec":`+spec+`}`),
			metav1.PatchOptions{})
		return err
	}
	if err := patch(`{"color":"blue"}`); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "a color stays") {
		t.Errorf("another color: %v", err)
	}
	client := definitions(t, s.ConfigAs(servertest.Admin))
	servertest.Eventually(t, "the bound is written", func(ctx context.Context) string {
		d, err := client.Get(ctx, "widgets.example.com", metav1.GetOptions{})
		if err == nil {
			atLeast(d, 3)
			_, err = client.Update(ctx, d, metav1.UpdateOptions{})
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
	servertest.Eventually(t, "the bound holds", func(ctx context.Context) string {
		if _, err := of.Create(ctx, widget("tiny", "size", int64(2)), metav1.CreateOptions{
			DryRun: []string{metav1.DryRunAll}}); !apierrors.IsInvalid(err) {
			return fmt.Sprint("a size below it: ", err)
		}
		return ""
	})
	if err := patch(`{"replicas":1}`); err != nil {
		t.Errorf("a change beside what was there before the bound: %v", err)
	}
	if err := patch(`{"size":1}`); !apierrors.IsInvalid(err) {
		t.Errorf("a change to another size below the bound: %v", err)
	}
	tooDear := widgetDefinition(t)
	tooDear.Name, tooDear.Spec.Names.Plural = "dears.example.com", "dears"
	color := schemaOf(tooDear, 0)["color"]
	color.MaxLength = nil
	color.XValidations[0].Rule = "self.matches('a+') && self.split('').all(a, self.split('').all(b, a == b))"
	schemaOf(tooDear, 0)["color"] = color
	if _, err := client.Create(t.Context(), tooDear, metav1.CreateOptions{}); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "cost") {
		t.Errorf("a rule that may cost more than there is: %v", err)
	}
}

// The status is written apart from the rest, and kubectl scale and autoscalers find the number of replicas.
func testSubresourcesOfWidgets(t *testing.T, _ *servertest.Server, of dynamic.ResourceInterface) {
	w, err := of.Create(t.Context(), widget("scaled", "replicas", int64(1)), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Object["status"] = map[string]any{"replicas": int64(1), "selector": "app=w"}
	_ = unstructured.SetNestedField(w.Object, int64(7), "spec", "replicas")
	if w, err = of.UpdateStatus(t.Context(), w, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if field(w, "spec", "replicas") != "1" || field(w, "status", "replicas") != "1" || w.GetGeneration() != 1 {
		t.Errorf("after a write of the status: %v", w.Object)
	}
	w.Object["status"] = map[string]any{"replicas": int64(9)}
	if w, err = of.Update(t.Context(), w, metav1.UpdateOptions{}); err != nil || field(w, "status", "replicas") != "1" {
		t.Errorf("after a write beside the status: %v, %v", w, err)
	}
	scale, err := of.Get(t.Context(), "scaled", metav1.GetOptions{}, "scale")
	if err != nil || scale.GetKind() != "Scale" || field(scale, "status", "selector") != "app=w" {
		t.Fatalf("the scale: %v, %v", scale, err)
	}
	_ = unstructured.SetNestedField(scale.Object, int64(4), "spec", "replicas")
	if _, err := of.Update(t.Context(), scale, metav1.UpdateOptions{}, "scale"); err != nil {
		t.Fatal(err)
	}
	if w, err = of.Get(t.Context(), "scaled", metav1.GetOptions{}); err != nil || field(w, "spec", "replicas") != "4" ||
		w.GetGeneration() != 2 {
		t.Errorf("scaled: %v, %v", w, err)
	}
}

// Who applies owns the fields that he names.
func testApplyOfWidgets(t *testing.T, _ *servertest.Server, of dynamic.ResourceInterface) {
	if _, err := of.Apply(t.Context(), "applied", widget("applied", "size", int64(5)), metav1.ApplyOptions{
		FieldManager: "ann"}); err != nil {
		t.Fatal(err)
	}
	other := widget("applied", "size", int64(6))
	_, err := of.Apply(t.Context(), "applied", other, metav1.ApplyOptions{FieldManager: "bob"})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), ".spec.size") {
		t.Errorf("somebody else's field: %v", err)
	}
	w, err := of.Apply(t.Context(), "applied", other, metav1.ApplyOptions{FieldManager: "bob", Force: true})
	if err != nil || field(w, "spec", "size") != "6" {
		t.Errorf("by force: %v, %v", w, err)
	}
	for _, entry := range w.GetManagedFields() {
		owns := strings.Contains(entry.FieldsV1.GetRawString(), "f:size")
		if owns != (entry.Manager == "bob") {
			t.Errorf("%s owns %s", entry.Manager, entry.FieldsV1.GetRawString())
		}
	}
}

// Objects are found by the fields that the definition names, and by no others.
func testSelectableWidgets(t *testing.T, _ *servertest.Server, of dynamic.ResourceInterface) {
	for name, color := range map[string]string{"green1": "green", "green2": "green", "gray": "gray"} {
		if _, err := of.Create(t.Context(), widget(name, "color", color), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := of.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.color=green"})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("the green ones: %v, %v", list, err)
	}
	if _, err := of.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.size=3"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a field that is not selectable: %v", err)
	}
}

// kubectl shows the columns that the definition names.
func testTableOfWidgets(t *testing.T, s *servertest.Server, of dynamic.ResourceInterface) {
	if _, err := of.Create(t.Context(), widget("shown", "size", int64(8), "color", "pink"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	body, err := s.Client.CoreV1().RESTClient().Get().
		AbsPath("/apis/example.com/v1/namespaces/default/widgets/shown").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(body, &table); err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, fmt.Sprint(c.Name, " ", c.Priority))
	}
	if got := strings.Join(columns, ", "); got != "Name 0, Size 0, Color 1" {
		t.Errorf("the columns are %s", got)
	}
	if len(table.Rows) != 1 || fmt.Sprint(table.Rows[0].Cells) != "[shown 8 pink]" {
		t.Errorf("the rows are %v", table.Rows)
	}
}
