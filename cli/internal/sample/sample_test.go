package sample

import (
	"bytes"
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"
)

func TestTheManifestIsAValidDeployment(t *testing.T) {
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(Manifest, &d); err != nil {
		t.Fatal(err)
	}
	if d.Name != Name || d.Namespace != Namespace || *d.Spec.Replicas != 3 || d.Spec.Template.Spec.Containers[0].Image != "keelson.dev/hello:1" {
		t.Errorf("got %+v", d)
	}
}

func deployment(replicas, ready int32, condition corev1.ConditionStatus) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: Namespace, Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
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

func TestWaitShowsProgressAndGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := fake.NewClientset(deployment(3, 1, corev1.ConditionFalse))
	out := &cancelOnWrite{cancel: cancel}
	err := WaitAvailable(ctx, client, out)
	if err == nil || !strings.Contains(err.Error(), "1 of 3 available") || !strings.Contains(out.String(), "Deployment hello: 1 of 3 available\n") {
		t.Errorf("got %q, %v", out.String(), err)
	}
	client = fake.NewClientset(deployment(3, 3, corev1.ConditionTrue))
	if err := WaitAvailable(t.Context(), client, &bytes.Buffer{}); err != nil {
		t.Error(err)
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

func TestExists(t *testing.T) {
	if there, err := Exists(t.Context(), fake.NewClientset()); err != nil || there {
		t.Errorf("in an empty mesh: %t, %v", there, err)
	}
}
