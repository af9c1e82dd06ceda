package node

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// SAF-187: the Node lists which volumes are in use, Reported is called only when the API server has the list, and a
// version older than the last write does not count.
func TestVolumesInUse(t *testing.T) {
	client, inUse, refuse := fake.NewClientset(), []corev1.UniqueVolumeName{"a"}, false
	var told [][]corev1.UniqueVolumeName
	version := 10
	client.PrependReactor("*", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if refuse && action.GetVerb() == "update" {
			return true, nil, errors.New("conflict")
		}
		if write, ok := action.(clienttesting.UpdateAction); ok {
			version++
			write.GetObject().(*corev1.Node).ResourceVersion = strconv.Itoa(version)
		}
		return false, nil, nil
	})
	n := New(Config{Client: client, Log: zap.NewNop(), Facts: facts(),
		Health:   func(context.Context) Health { return Health{VolumesInUse: inUse} },
		Reported: func(names []corev1.UniqueVolumeName) { told = append(told, names) }})
	if err := n.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := n.Current().Status.VolumesInUse; !slices.Equal(got, inUse) || len(told) != 1 {
		t.Fatalf("in use are %v, told %v", got, told)
	}
	before := n.Current()
	inUse, refuse, told = []corev1.UniqueVolumeName{"a", "b"}, true, nil
	if err := n.report(t.Context()); err == nil || len(told) != 0 {
		t.Errorf("a write that failed: %v, told %v", err, told)
	}
	refuse = false
	if err := n.report(t.Context()); err != nil || len(told) != 1 || len(told[0]) != 2 {
		t.Errorf("a write that succeeded: %v, told %v", err, told)
	}
	n.Observe(before)
	if got := n.Current().Status.VolumesInUse; len(got) != 2 {
		t.Errorf("an older version of the node counts: %v", got)
	}
	if err := n.report(t.Context()); err != nil || len(told) != 2 {
		t.Errorf("nothing new to write: %v, told %v", err, told)
	}
}
