package registry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"keelson.dev/services/apiserver/internal/servertest"
)

// TestSuiteOnServer checks what shows only when a resource is served and stored.
func TestSuiteOnServer(t *testing.T) {
	server := servertest.Start(t)
	namespace := server.Namespace(t, "suite")
	client, err := dynamic.NewForConfig(server.ConfigAs(servertest.Admin))
	if err != nil {
		t.Fatal(err)
	}
	objectsOf := func(s *subject) dynamic.ResourceInterface {
		resource := client.Resource(s.kind.GroupVersion().WithResource(s.Resource))
		if s.ClusterScoped {
			return resource
		}
		return resource.Namespace(namespace)
	}
	subjects := installed(t)
	applied := map[*subject]*unstructured.Unstructured{}
	for _, s := range subjects {
		if !s.readOnly() {
			applied[s] = s.settled(t, objectsOf(s), s.apply(t, objectsOf(s)))
		}
	}
	nextSecond(t)
	for _, s := range subjects {
		t.Run(s.GroupResource.String(), func(t *testing.T) {
			objects := objectsOf(s)
			if s.readOnly() {
				s.checkReadOnly(t, objects)
				return
			}
			wantSame(t, "applied twice", applied[s], s.apply(t, objects))
			s.checkStrict(t, objects)
			s.checkUpdates(t, objects)
		})
	}
}

// nextSecond waits until an apply would have another time.
func nextSecond(t *testing.T) {
	t.Helper()
	now := time.Now().Unix()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 10*time.Second, true,
		func(context.Context) (bool, error) { return time.Now().Unix() > now, nil }); err != nil {
		t.Fatalf("waiting for the next second: %v", err)
	}
}

// checkReadOnly wants every write to be refused as such, whatever is written.
func (s *subject) checkReadOnly(t *testing.T, objects dynamic.ResourceInterface) {
	t.Helper()
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(s.Example)}
	object.SetGroupVersionKind(s.kind)
	for name, write := range map[string]func() error{
		"create": func() error { _, err := objects.Create(t.Context(), object, metav1.CreateOptions{}); return err },
		"update": func() error { _, err := objects.Update(t.Context(), object, metav1.UpdateOptions{}); return err },
		"apply": func() error {
			_, err := objects.Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "suite"})
			return err
		},
		"delete": func() error { return objects.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{}) },
		"delete of all": func() error {
			return objects.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
		},
	} {
		if err := write(); !apierrors.IsMethodNotSupported(err) {
			t.Errorf("%s: %v, want it to be refused as a method", name, err)
		}
	}
	if _, err := objects.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("listing: %v", err)
	}
}

// apply applies the example; a second time that changes nothing.
func (s *subject) apply(t *testing.T, objects dynamic.ResourceInterface) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(s.Example)}
	object.SetGroupVersionKind(s.kind)
	applied, err := objects.Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "suite"})
	if err != nil {
		t.Fatalf("applying %s: %v", s.GroupResource, err)
	}
	return applied
}

// settled is the object once the apiserver has written into it what it writes of itself.
func (s *subject) settled(
	t *testing.T, objects dynamic.ResourceInterface, object *unstructured.Unstructured,
) *unstructured.Unstructured {
	t.Helper()
	if s.Settled == "" {
		return object
	}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (written bool, err error) {
			if object, err = objects.Get(ctx, object.GetName(), metav1.GetOptions{}); err == nil {
				_, written, err = unstructured.NestedFieldNoCopy(object.Object, strings.Split(s.Settled, ".")...)
			}
			return written, err
		})
	if err != nil {
		t.Fatalf("waiting for %s of %s: %v", s.Settled, s.GroupResource, err)
	}
	return object
}

// checkStrict wants a field that does not exist to be refused by its name, if the client asks for strictness.
func (s *subject) checkStrict(t *testing.T, objects dynamic.ResourceInterface) {
	t.Helper()
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(s.Example)}
	object.SetGroupVersionKind(s.kind)
	object.SetName("strict")
	object.Object["unheardOf"] = "x"
	_, err := objects.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "unheardOf"`) {
		t.Errorf("an unknown field: %v", err)
	}
}

// checkUpdates stores valid objects, wants their fields to belong to who created them, and an update with what was read
// to change nothing.
func (s *subject) checkUpdates(t *testing.T, objects dynamic.ResourceInterface) {
	t.Helper()
	stored := 0
	var refused error
	for seed := range int64(6) {
		object := &unstructured.Unstructured{Object: s.valid(t, seed, fmt.Sprintf(s.Names, seed))}
		object.SetGroupVersionKind(s.kind)
		object.SetAnnotations(map[string]string{"suite": "so that there is a field"})
		created, err := objects.Create(t.Context(), object, metav1.CreateOptions{FieldManager: "suite"})
		if err != nil {
			refused = err
			continue
		}
		stored++
		if managers := created.GetManagedFields(); len(managers) != 1 || managers[0].Manager != "suite" {
			t.Errorf("seed %d: the fields of a new object belong to %v, want the suite", seed, managers)
		}
		created = s.settled(t, objects, created)
		updated, err := objects.Update(t.Context(), created, metav1.UpdateOptions{})
		if err != nil {
			t.Errorf("seed %d: an update that changes nothing: %v", seed, err)
			continue
		}
		wantSame(t, fmt.Sprintf("seed %d: updated with itself", seed), created, updated)
	}
	// Some random fields are refused by admission or mean something that is missing here.
	if stored == 0 {
		t.Errorf("no random object was stored: the check shows nothing; the last refusal: %v", refused)
	}
}

func wantSame(t *testing.T, what string, before, after *unstructured.Unstructured) {
	t.Helper()
	if before.GetResourceVersion() != after.GetResourceVersion() || before.GetGeneration() != after.GetGeneration() {
		t.Errorf("%s: resourceVersion %s, then %s, generation %d, then %d", what, before.GetResourceVersion(),
			after.GetResourceVersion(), before.GetGeneration(), after.GetGeneration())
		differing(before.Object, after.Object, "", func(path, difference string) { t.Logf("%s: %s", path, difference) })
	}
}
