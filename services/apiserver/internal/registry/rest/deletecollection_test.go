package rest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/core/pod"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// A collection goes with one call for each of its objects, each treated as its own delete would.
func TestDeleteCollection(t *testing.T) {
	w := newWorld(t, rest.Serve(pod.Resource))
	pods := open(t, w, pod.Resource)
	var last *corev1.Pod
	for i := range 9 {
		p := aPod(fmt.Sprintf("p%d", i), []string{"", "n", ""}[i%3])
		p.Labels = map[string]string{"group": []string{"a", "b"}[i/6]}
		if i == 2 {
			p.Finalizers = []string{"example.com/x"}
		}
		last = pods.put(p)
	}
	pods.settle(last)
	of := func(group string) *internalversion.ListOptions {
		return &internalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"group": group}),
			ResourceVersion: "0"}
	}
	before := w.calls.Load()
	listed, err := pods.DeleteCollection(pods.ctx(), genericrest.ValidateAllObjectFunc, &metav1.DeleteOptions{},
		of("a"))
	if calls := w.calls.Load() - before; err != nil || meta.LenList(listed) != 6 || calls != 6 {
		t.Errorf("deleting 6: listed %d, %d calls, %v", meta.LenList(listed), calls, err)
	}
	for i, grace := range map[int]int64{0: -1, 1: 30, 2: 0, 3: -1, 4: 30, 5: -1} {
		got := int64(-1)
		if left, ok := pods.read(fmt.Sprintf("p%d", i)).(*corev1.Pod); ok {
			got = *left.DeletionGracePeriodSeconds
		}
		if got != grace {
			t.Errorf("p%d is left with a grace period of %d, want %d (-1: it is gone)", i, got, grace)
		}
	}
	refuse := func(_ context.Context, obj runtime.Object) error {
		if obj.(*corev1.Pod).Name == "p7" {
			return apierrors.NewBadRequest("not this one")
		}
		return nil
	}
	one := of("b")
	one.Limit, one.ResourceVersion = 1, ""
	listed, err = pods.DeleteCollection(pods.ctx(), refuse, now, one)
	if err != nil || meta.LenList(listed) != 1 || pods.read("p6") != nil || pods.read("p8") == nil {
		t.Errorf("deleting one page: listed %d, %v", meta.LenList(listed), err)
	}
	if _, err = pods.DeleteCollection(pods.ctx(), refuse, now, nil); !apierrors.IsBadRequest(err) ||
		pods.read("p7") == nil {
		t.Errorf("deleting one that is refused: %v", err)
	}
	_, err = pods.DeleteCollection(pods.ctx(), func(context.Context, runtime.Object) error {
		panic("no such case")
	}, now, of("b"))
	if err == nil || !strings.Contains(err.Error(), "no such case") || pods.read("p7") == nil {
		t.Errorf("deleting breaks off: %v", err)
	}
	_, err = pods.DeleteCollection(pods.ctx(), func(ctx context.Context, obj runtime.Object) error {
		_, _, err := pods.Store.Delete(ctx, obj.(*corev1.Pod).Name, genericrest.ValidateAllObjectFunc, now.DeepCopy())
		return err
	}, now, of("b"))
	if err != nil || pods.read("p7") != nil {
		t.Errorf("deleting what somebody else deletes: %v", err)
	}
}

// What a delete of an unbound Pod costs, beside the library's own.
func BenchmarkDelete(b *testing.B) {
	w := newWorld(b, rest.Serve(pod.Resource))
	pods := open(b, w, pod.Resource)
	for name, remove := range map[string]func(context.Context, string, genericrest.ValidateObjectFunc,
		*metav1.DeleteOptions) (runtime.Object, bool, error){"own": pods.Delete, "library": pods.Store.Delete} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				b.StopTimer()
				pods.settle(pods.put(aPod(fmt.Sprintf("%s-%d-%d", name, b.N, i), "n")))
				before := w.calls.Load()
				b.StartTimer()
				if _, _, err := remove(pods.ctx(), fmt.Sprintf("%s-%d-%d", name, b.N, i),
					genericrest.ValidateAllObjectFunc,
					now.DeepCopy()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(w.calls.Load()-before), "calls/op")
			}
		})
	}
}
