package bind

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A PodGroup is written what is new, beside what others said, and nothing twice; a write that fails is reported.
func TestGroupStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g"}}
		g.Status.Conditions = []metav1.Condition{{Type: "Other", Status: metav1.ConditionTrue, Reason: "R"}}
		client := fake.NewClientset(g)
		fails, failed := 1, []types.NamespacedName{}
		client.PrependReactor("patch", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
			fails--
			return fails >= 0, nil, errors.New("no")
		})
		s := NewGroupStatuses(client.SchedulingV1beta1(), &Terms{},
			func(name types.NamespacedName, _ error) { failed = append(failed, name) })
		ctx, cancel := context.WithCancel(t.Context())
		go s.Run(ctx)
		status := GroupStatus{Group: g, Pod: &corev1.Pod{}, Conditions: []metav1.Condition{{
			Type: "PodGroupInitiallyScheduled", Status: metav1.ConditionFalse, Reason: "Unschedulable", Message: "m"}}}
		s.Set(status, time.Now())
		synctest.Wait()
		if len(failed) != 1 || failed[0].Name != "g" {
			t.Errorf("told are %v", failed)
		}
		s.Set(status, time.Now())
		synctest.Wait()
		now, err := client.SchedulingV1beta1().PodGroups("default").Get(ctx, "g", metav1.GetOptions{})
		if err != nil || len(now.Status.Conditions) != 2 || now.Status.Conditions[1].Message != "m" ||
			now.Status.Conditions[1].LastTransitionTime.IsZero() {
			t.Errorf("%v: %+v", err, now.Status)
		}
		before := len(client.Actions())
		status.Group = now
		s.Set(status, time.Now())
		synctest.Wait()
		if n := len(client.Actions()) - before; n != 0 {
			t.Errorf("%d requests to write what the group says already", n)
		}
		cancel()
		synctest.Wait()
	})
}
