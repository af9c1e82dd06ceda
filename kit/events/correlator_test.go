package events

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

// happened is an Event of a few sources about a few objects. What fails, fails in a new way each time; what is done
// repeats itself in few.
func happened(r *rand.Rand) *corev1.Event {
	now := metav1.Now()
	reason, message := "Done", []string{"", "a", "b"}[r.IntN(3)]
	if r.IntN(2) == 0 {
		reason, message = "Failed", fmt.Sprint(r.Uint64())
	}
	name := fmt.Sprint("pod-", r.IntN(3))
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint(name, ".", r.Uint64())},
		InvolvedObject: corev1.ObjectReference{Namespace: "shop", Name: name, UID: types.UID(name), Kind: "Pod",
			FieldPath: []string{"", "spec"}[r.IntN(2)]},
		Type: []string{corev1.EventTypeNormal, corev1.EventTypeWarning}[r.IntN(2)], Reason: reason, Message: message,
		Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: []string{"one", "two"}[r.IntN(2)]},
	}
}

// What is written of any run of Events, joined, counted up or dropped, is what client-go would write.
func TestCorrelatorAgreesWithTheLibrary(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			own := newCorrelator()
			library := record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{LRUCacheSize: 4096})
			for step := range 400 {
				time.Sleep(time.Duration(r.IntN(10_000)) * time.Millisecond)
				e := happened(r)
				want, err := library.EventCorrelate(e.DeepCopy())
				if err != nil {
					t.Fatal(err)
				}
				got, ok := own.correlate(e)
				if ok == want.Skip {
					t.Fatalf("seed %d, step %d: written %t, want %t", seed, step, ok, !want.Skip)
				}
				if ok && (!reflect.DeepEqual(got.event, want.Event) || got.again != (want.Patch != nil)) {
					t.Fatalf("seed %d, step %d:\ngot  %+v\nwant %+v", seed, step, got.event, want.Event)
				}
				if ok && got.again && !sameJSON(t, patch(got.event), want.Patch) {
					t.Fatalf("seed %d, step %d: patch %s, want %s", seed, step, patch(got.event), want.Patch)
				}
			}
		})
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var left, right map[string]any
	if err := json.Unmarshal(a, &left); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &right); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(left, right)
}

// An Event that only repeats another costs a few objects, for most of them are counted up and never sent.
func TestRepetitionsAreCheap(t *testing.T) {
	c, e := newCorrelator(), happened(rand.New(rand.NewPCG(1, 1)))
	if allocated := testing.AllocsPerRun(100, func() { c.correlate(e) }); allocated > 20 {
		t.Errorf("%v objects are allocated for a repetition", allocated)
	}
}
