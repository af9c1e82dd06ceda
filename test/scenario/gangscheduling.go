package scenario

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// gang is a group of two Pods: one can run anywhere, the second one only on nodes with a label that the caller
// fills in.
const gang = `apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: v1
kind: Pod
metadata: {name: easy}
spec:
  schedulingGroup: {podGroupName: gang}
  containers: [{name: main, image: ` + Server + `}]
---
apiVersion: v1
kind: Pod
metadata: {name: picky}
spec:
  schedulingGroup: {podGroupName: gang}
  nodeSelector: {%s: "yes"}
  containers: [{name: main, image: ` + Server + `}]
`

// GangScheduling runs two Pods that are scheduled together: while one fits nowhere both wait, and say why; when there
// is a node for both, both run. The group that is deleted stays until they have gone.
func GangScheduling(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	label := "tests.keelson.dev/" + w.Namespace
	w.KubectlWith(fmt.Sprintf(gang, label), "apply", "-f", "-")
	const why = "pod group gang needs 2 pods to be scheduled together, 1 of 2 that wait fit at the same time"
	for _, name := range []string{"easy", "picky"} {
		w.Await(name+" to say why it waits", func() Answer {
			p := w.pod(name)
			if said := condition(p, corev1.PodScheduled); !strings.HasPrefix(said.Message, why) {
				return Sawf("%s: %s", said.Reason, said.Message)
			}
			return ""
		})
	}
	scheduled := func() metav1.Condition {
		g, err := w.Client.SchedulingV1beta1().PodGroups(w.Namespace).Get(t.Context(), "gang", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if c := meta.FindStatusCondition(g.Status.Conditions, "PodGroupInitiallyScheduled"); c != nil {
			return *c
		}
		return metav1.Condition{}
	}
	w.Await("the group to say why it waits", func() Answer {
		if c := scheduled(); c.Status != metav1.ConditionFalse || c.Reason != "Unschedulable" ||
			!strings.HasPrefix(c.Message, why) {
			return Sawf("%+v", c)
		}
		return ""
	})
	if table := w.Kubectl("get", "podgroups"); !strings.Contains(table, "Unschedulable") {
		t.Errorf("kubectl prints\n%s", table)
	}
	for _, p := range w.Pods("") {
		if p.Spec.NodeName != "" {
			t.Errorf("Pod %s is on %s while the other waits", p.Name, p.Spec.NodeName)
		}
	}
	node := m.Nodes()[0]
	w.Kubectl("label", "node", node, label+"=yes")
	defer w.Kubectl("label", "node", node, label+"-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/easy", "pod/picky", "--timeout=60s")
	w.Kubectl("wait", "--for=condition=PodGroupInitiallyScheduled", "podgroup/gang", "--timeout=60s")
	if picky := w.pod("picky"); picky.Spec.NodeName != node {
		t.Errorf("the picky Pod is on %s", picky.Spec.NodeName)
	}
	if c := scheduled(); c.Reason != "Scheduled" {
		t.Errorf("the group says %+v", c)
	}
	w.Kubectl("delete", "podgroup/gang", "--wait=false")
	w.Kubectl("delete", "pod/easy", "--wait=true", "--timeout=60s")
	g, err := w.Client.SchedulingV1beta1().PodGroups(w.Namespace).Get(t.Context(), "gang", metav1.GetOptions{})
	if err != nil || g.DeletionTimestamp == nil {
		t.Errorf("the group of a Pod that runs: %+v, %v", g.ObjectMeta, err)
	}
	w.Kubectl("delete", "pod/picky", "--timeout=60s")
	w.Kubectl("wait", "--for=delete", "podgroup/gang", "--timeout=60s")
}
