package carriedfields

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
)

// damaged are managed fields that the library's check refuses: it puts those back that there were before admission.
func damaged() []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Nothing", FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)}}}
}

func podWith(fields []metav1.ManagedFieldsEntry) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", ManagedFields: fields}}
}

// plugin is a chain whose only plugin does this to a Pod.
type plugin func(p *corev1.Pod) error

func (plugin) Handles(admission.Operation) bool { return true }

func (f plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return f(a.GetObject().(*corev1.Pod))
}

func (f plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return f(a.GetObject().(*corev1.Pod))
}

func idle(*corev1.Pod) error { return nil }

func request(obj, old runtime.Object, operation admission.Operation, subresource string) admission.Attributes {
	return admission.NewAttributesRecord(obj, old, corev1.SchemeGroupVersion.WithKind("Pod"), "shop", "p",
		corev1.SchemeGroupVersion.WithResource("pods"), subresource, operation, nil, false, nil)
}

// The code that stores an object finds in it the managed fields that it had. The library's check has not seen them if a
// carrier was offered and no plugin has changed them.
func TestManagedFieldsPassTheCheck(t *testing.T) {
	stored, other := podWith(nil), podWith(nil)
	mine := func(p *corev1.Pod) error {
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "plugin", Operation: "Nothing"}}
		return nil
	}
	renamed := func(p *corev1.Pod) error { p.ManagedFields = damaged(); return nil }
	never := errors.New("never")
	for name, row := range map[string]struct {
		offer       func(context.Context) context.Context
		operation   admission.Operation
		subresource string
		plugin      plugin
		checked     bool
		want        []metav1.ManagedFieldsEntry
	}{
		"a create":                    {offered(nil), admission.Create, "", idle, false, damaged()},
		"an update":                   {offered(stored), admission.Update, "", idle, false, damaged()},
		"an update of the status":     {offered(stored), admission.Update, "status", idle, false, damaged()},
		"nobody puts them back":       {unoffered, admission.Update, "", idle, true, damaged()},
		"an object of a subresource":  {offered(nil), admission.Create, "binding", idle, true, damaged()},
		"what is inside of an update": {offered(other), admission.Update, "scale", idle, true, damaged()},
		"a create within an update":   {offered(stored), admission.Create, "", idle, true, damaged()},
		"an update within a create":   {offered(nil), admission.Update, "", idle, true, damaged()},
		"a plugin damages them":       {offered(nil), admission.Create, "", mine, true, damaged()},
		"a plugin makes them anew":    {offered(nil), admission.Create, "", renamed, true, damaged()},
		"a plugin refuses":            {offered(nil), admission.Create, "", fails(never), true, damaged()},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, obj := row.offer(t.Context()), podWith(damaged())
			seen := false
			chain := Over(plugin(func(p *corev1.Pod) error {
				seen = equality.Semantic.DeepEqual(p.ManagedFields, damaged())
				return row.plugin(p)
			}))
			var old runtime.Object
			if row.operation == admission.Update {
				old = stored
			}
			checked := admission.Interface(behind{chain, func() {
				if got := len(obj.ManagedFields) > 0; got != row.checked {
					t.Errorf("the check sees them: %t, want %t", got, row.checked)
				}
			}})
			check := fieldmanager.NewManagedFieldsValidatingAdmissionController(checked).(admission.MutationInterface)
			err := check.Admit(ctx, request(obj, old, row.operation, row.subresource), nil)
			if err != nil && !errors.Is(err, never) {
				t.Fatal(err)
			}
			if !seen {
				t.Error("the plugin has not seen the managed fields")
			}
			for range 2 {
				PutBack(ctx, obj)
				if !equality.Semantic.DeepEqual(obj.ManagedFields, row.want) {
					t.Errorf("the managed fields are %v, want %v", obj.ManagedFields, row.want)
				}
			}
		})
	}
}

// behind is a chain that calls after when it has admitted something.
type behind struct {
	admission.Interface

	after func()
}

func (b behind) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	defer b.after()
	return b.Interface.(admission.MutationInterface).Admit(ctx, a, o)
}

func fails(err error) plugin { return func(*corev1.Pod) error { return err } }

func offered(old runtime.Object) func(context.Context) context.Context {
	return func(ctx context.Context) context.Context { return Offer(ctx, old) }
}

func unoffered(ctx context.Context) context.Context { return ctx }

// The library empties the managed fields of what is too large behind admission: they stay empty.
func TestWhatIsEmptiedStaysEmpty(t *testing.T) {
	ctx, obj := Offer(t.Context(), nil), podWith(damaged())
	if err := Over(plugin(idle)).(admission.MutationInterface).Admit(ctx, request(obj, nil, admission.Create, ""),
		nil); err != nil {
		t.Fatal(err)
	}
	obj.SetManagedFields(nil)
	if PutBack(ctx, obj); len(obj.ManagedFields) != 0 {
		t.Errorf("the managed fields are %v, want none", obj.ManagedFields)
	}
}

// What only reads and what ends is admitted as without this package.
func TestOtherRequests(t *testing.T) {
	for _, operation := range []admission.Operation{admission.Delete, admission.Connect} {
		asked := false
		chain := Over(plugin(func(*corev1.Pod) error { asked = true; return nil })).(admission.MutationInterface)
		obj := podWith(damaged())
		if err := chain.Admit(Offer(t.Context(), nil), request(obj, nil, operation, ""), nil); err != nil || !asked {
			t.Errorf("%s: %v, the plugin was asked: %t", operation, err, asked)
		}
		if !equality.Semantic.DeepEqual(obj.ManagedFields, damaged()) {
			t.Errorf("%s: the managed fields are %v", operation, obj.ManagedFields)
		}
	}
	refused := errors.New("refused")
	validating := Over(fails(refused)).(admission.ValidationInterface)
	if err := validating.Validate(t.Context(), request(podWith(nil), nil, admission.Create, ""), nil); !errors.Is(err,
		refused) {
		t.Errorf("validating: %v, want %v", err, refused)
	}
	if !Over(plugin(idle)).Handles(admission.Connect) {
		t.Error("the chain does not handle what its plugins do")
	}
}

// Creates are carried, and no other requests: each try of an update has an offer of its own.
func TestForCreates(t *testing.T) {
	for method, want := range map[string]bool{http.MethodPost: true, http.MethodPut: false, http.MethodGet: false} {
		var got bool
		ForCreates(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, got = r.Context().Value(key{}).(*carrier)
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, "/", nil))
		if got != want {
			t.Errorf("%s: offered %t, want %t", method, got, want)
		}
	}
}
