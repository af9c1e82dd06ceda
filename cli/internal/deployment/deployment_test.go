package deployment

import (
	"bytes"
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

// hello is the Deployment of these tests.
var hello = Name{Namespace: "default", Name: "hello"}

func deployment(replicas, ready int32, condition corev1.ConditionStatus) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: hello.Name, Namespace: hello.Namespace, Generation: 2},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": hello.Name}},
		},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 2, AvailableReplicas: ready,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: condition}},
		},
	}
}

func TestAvailable(t *testing.T) {
	old := deployment(3, 3, corev1.ConditionTrue)
	old.Status.ObservedGeneration = 1
	for name, c := range map[string]struct {
		d    *appsv1.Deployment
		want bool
	}{
		"all":            {deployment(3, 3, corev1.ConditionTrue), true},
		"one short":      {deployment(3, 2, corev1.ConditionTrue), false},
		"not yet said":   {deployment(3, 3, corev1.ConditionFalse), false},
		"an old status":  {old, false},
		"scaled to none": {deployment(0, 0, corev1.ConditionTrue), true},
	} {
		if got := available(c.d); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: hello.Namespace, UID: types.UID(name),
		Labels: map[string]string{"app": hello.Name}}}
}

func run(names ...string) Running {
	return func(context.Context) (map[types.UID]bool, error) {
		truth := map[types.UID]bool{}
		for _, name := range names {
			truth[types.UID(name)] = true
		}
		return truth, nil
	}
}

// The API may still say that Pods are available that an earlier run of the mesh has left there.
func TestWaitBelievesWhatRuns(t *testing.T) {
	for name, c := range map[string]struct {
		available int32
		condition corev1.ConditionStatus
		running   Running
		want      string // the progress at which it gives up; empty when it does not
	}{
		"not yet":             {1, corev1.ConditionFalse, run("a", "b"), "1 of 2 available"},
		"an earlier run's":    {2, corev1.ConditionTrue, run("a"), "1 of 2 available"},
		"another's Pods":      {2, corev1.ConditionTrue, run("x", "y", "z"), "0 of 2 available"},
		"available and there": {2, corev1.ConditionTrue, run("a", "b"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := &cancelOnWrite{cancel: cancel}
			err := WaitAvailable(ctx, fake.NewClientset(deployment(2, c.available, c.condition), pod("a"), pod("b")),
				hello, c.running, out)
			if c.want == "" && err != nil {
				t.Error(err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) ||
				out.String() != "    Deployment hello: "+c.want+"\n") {
				t.Errorf("got %q, %v", out.String(), err)
			}
		})
	}
}

// cancelOnWrite ends the wait once it has shown something.
type cancelOnWrite struct {
	bytes.Buffer
	cancel context.CancelFunc
}

func (c *cancelOnWrite) Write(p []byte) (int, error) {
	c.cancel()
	return c.Buffer.Write(p)
}
