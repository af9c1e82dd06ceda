package room

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// store holds no Pods, and breaks off as often as it is told to.
type store struct {
	Pods
	breaks int
}

func (s *store) List(context.Context, *internalversion.ListOptions) (runtime.Object, error) {
	if s.breaks--; s.breaks >= 0 {
		panic("no such case")
	}
	return &corev1.PodList{}, nil
}

func (s *store) Watch(ctx context.Context, _ *internalversion.ListOptions) (watch.Interface, error) {
	w := watch.NewFake()
	context.AfterFunc(ctx, w.Stop)
	return w, nil
}

// A defect that the following of the store meets ends neither the process nor the following: bindings wait for the next
// try.
func TestFollowingBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(&store{breaks: 2})
		defer r.Close()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1"}}
		if _, err := r.Reserve(t.Context(), pod, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}); err != nil {
			t.Error(err)
		}
	})
}
