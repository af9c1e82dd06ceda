package eventbatch

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/openapi"
	"keelson.dev/services/apiserver/internal/scheme"
	"keelson.dev/services/apiserver/internal/typedfields"
)

// store is what a test makes of each create.
type store func(ctx context.Context, e *corev1.Event) error

func (store) New() runtime.Object { return &corev1.Event{} }

func (s store) Create(ctx context.Context, obj runtime.Object, _ genericrest.ValidateObjectFunc,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	return obj, s(ctx, obj.(*corev1.Event))
}

func writerTo(t testing.TB, s store) *writer {
	t.Helper()
	known, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	_, described := openapi.Configs(known)
	fields, err := typedfields.New(known, described, typedfields.Kinds{
		Stored: []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Event")}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWriter(Config{Scheme: known, Serializer: scheme.Codecs(known), Events: s,
		Admission: admission.NewChainHandler(), Types: fields})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func events(n int) []corev1.Event {
	out := make([]corev1.Event, n)
	for i := range out {
		out[i] = corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint(i)},
			InvolvedObject: corev1.ObjectReference{UID: types.UID(fmt.Sprint(i))}}
	}
	return out
}

// A defect that one Event meets is the end of neither the server nor the others.
func TestOneEventBreaksOff(t *testing.T) {
	w := writerTo(t, func(_ context.Context, e *corev1.Event) error {
		if e.Name == "3" {
			panic("no such case")
		}
		return nil
	})
	for i, err := range w.createAll(t.Context(), events(10), &metav1.CreateOptions{}, "m") {
		if i == 3 != apierrors.IsInternalError(err) || i != 3 && err != nil {
			t.Errorf("Event %d: %v", i, err)
		}
	}
}

// A batch takes no more of the server than 32 requests would, and what its time does not suffice for is refused.
func TestEventsAtATime(t *testing.T) {
	w := writerTo(t, nil)
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		w.Events = store(func(ctx context.Context, _ *corev1.Event) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		stored, late := 0, 0
		for _, err := range w.createAll(ctx, events(500), &metav1.CreateOptions{}, "m") {
			switch {
			case err == nil:
				stored++
			case apierrors.IsTimeout(err):
				late++
			}
		}
		if most.Load() > 32 || most.Load() < 16 || stored < 32 || stored > 64 || late < 500-96 {
			t.Errorf("%d at a time, %d stored, %d late", most.Load(), stored, late)
		}
	})
}

func TestManager(t *testing.T) {
	for _, row := range []struct{ field, agent, want string }{
		{"said", "keelson-scheduler", "said"},
		{"", "keelson-scheduler", "keelson-scheduler"},
		{"", "kubectl/v1.37 (linux)", "kubectl"},
		{"", "a\nb", "ab"},
		{"", "", ""},
		{"", strings.Repeat("x", 128), strings.Repeat("x", 128)},
		{"", strings.Repeat("x", 129), strings.Repeat("x", 128)},
		{"", strings.Repeat("x", 127) + "é", strings.Repeat("x", 127)},
	} {
		if got := manager(&metav1.CreateOptions{FieldManager: row.field}, row.agent); got != row.want {
			t.Errorf("manager of %q and %q is %q, want %q", row.field, row.agent, got, row.want)
		}
	}
}
