package tainteviction

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// What is ahead of a Pod is told by the decision that evicts it, and only where that is made.
func TestOutlook(t *testing.T) {
	for _, row := range []struct {
		name string
		node *corev1.Node
		pod  *corev1.Pod
		want string
		at   string
	}{
		{"not tainted", newNode(), newPod("p"), "", ""},
		{"tolerated for ever", newNode("down@-60"), newPod("p", tolerating("down", -1)), "", ""},
		{"tolerated for a while", newNode("down@-60"), newPod("p", tolerating("down", 90)),
			"waits for its tolerationSeconds to be over for taint down:NoExecute of node n, and then evicts it",
			"waits for its tolerationSeconds to be over for taint down:NoExecute of node n, and then evicts it since " +
				"2026-03-01T11:59:00Z; it ends when it is 2026-03-01T12:00:30Z, or the taint is taken off"},
		{"not tolerated", newNode("down@-60"), newPod("p"),
			"in its next pass evicts it: it does not tolerate taint down:NoExecute",
			"evicts it: it does not tolerate taint down:NoExecute"},
		{"being deleted", newNode("down@-60"), newPod("p", terminating), "", ""},
	} {
		var o Outlook
		if a := o.Of(t.Context(), row.pod); len(a.Does)+len(a.Waits) > 0 {
			t.Errorf("%s: without a leader: %+v", row.name, a)
		}
		c := &collector{cached: fake.NewClientBuilder().WithObjects(row.node).Build(),
			now: func() time.Time { return now }, tainted: map[string]memory{}}
		o.lead(c)
		a := o.Of(t.Context(), row.pod)
		if len(a.Does)+len(a.Waits) == 0 {
			if row.want != "" {
				t.Errorf("%s: nothing", row.name)
			}
			continue
		}
		e := a.Explanation()
		if e.Summary != row.want || e.Facts[0].Message != row.at {
			t.Errorf("%s: %q, %q", row.name, e.Summary, e.Facts[0].Message)
		}
		if len(c.tainted) > 0 {
			t.Errorf("%s: it remembers what it was asked", row.name)
		}
	}
}
