package scenario

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// DisruptionBudgetBlocksDrain drains a node whose Pods a budget needs: kubectl tries until its time is over, and no Pod
// is touched. When the budget lets one go at a time, the drain ends.
//
// SAF-029 SAF-033 SAF-044 SAF-045 SAF-051 SAF-053 SAF-060
func DisruptionBudgetBlocksDrain(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	app := "guarded-" + w.Namespace
	w.KubectlWith(strings.ReplaceAll(web(3, HelloV1, ""), "web", app), "apply", "-f", "-")
	w.AwaitAvailable(app, 3)
	if got := w.Kubectl("create", "poddisruptionbudget", "guard", "--selector=app="+app, "--min-available=3"); got !=
		"poddisruptionbudget.policy/guard created\n" {
		t.Errorf("create printed %q", got)
	}
	awaitBudget(w, "guard 3 N/A 0")
	node := w.Pods("app=" + app)[0].Spec.NodeName
	defer w.Kubectl("uncordon", node)
	before := w.podUIDs("app=" + app)
	held := w.TryKubectl("", "drain", node, "--pod-selector=app="+app, "--timeout=7s")
	if held.Code == 0 || !strings.Contains(held.Stderr,
		"Cannot evict pod as it would violate the pod's disruption budget.") {
		t.Errorf("SAF-053: the drain is not held: status %d, %s%s", held.Code, held.Stdout, held.Stderr)
	}
	if after := w.podUIDs("app=" + app); after != before {
		t.Errorf("SAF-051: the Pods were %s and are %s", before, after)
	}
	w.Kubectl("patch", "pdb", "guard", "--type=merge", "-p", `{"spec":{"minAvailable":2}}`)
	awaitBudget(w, "guard 2 N/A 1")
	if r := w.TryKubectl("", "drain", node, "--pod-selector=app="+app, "--timeout=2m"); r.Code != 0 ||
		!strings.Contains(r.Stdout, "node/"+node+" drained") {
		t.Errorf("drain: status %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	w.AwaitAvailable(app, 3)
	awaitBudget(w, "guard 2 N/A 1")
	w.awaitOutput([]string{"Name:", "guard", "Min available:  2", "Selector:       app=" + app,
		"Allowed disruptions:  1",
		"Current:              3", "Desired:              2", "Total:                3"}, "describe", "pdb", "guard")
}

// DisruptionBudgetPercentage counts a share of the Pods that a Deployment intends, also when it intends more.
//
// SAF-032 SAF-034
func DisruptionBudgetPercentage(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(web(5, HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable("web", 5)
	w.Kubectl("create", "pdb", "guard", "--selector=app=web", "--max-unavailable=30%")
	awaitBudget(w, "guard N/A 30% 2")
	w.Kubectl("scale", "deployment", "web", "--replicas=7")
	w.AwaitAvailable("web", 7)
	awaitBudget(w, "guard N/A 30% 3")
}

// awaitBudget waits until kubectl shows the only budget so, without its age, and what it shows was counted: a budget
// that is not counted yet allows no disruption either.
func awaitBudget(w *World, want string) {
	w.Helper()
	w.Await("the budget as "+want, func() Answer {
		budgets, err := w.Client.PolicyV1().PodDisruptionBudgets(w.Namespace).List(w.Context(), metav1.ListOptions{})
		if err != nil || len(budgets.Items) != 1 {
			return Sawf("%d budgets, %v", len(budgets.Items), err)
		}
		if b := budgets.Items[0]; b.Status.ObservedGeneration != b.Generation {
			return Sawf("generation %d of %d was counted", b.Status.ObservedGeneration, b.Generation)
		}
		row := strings.Fields(w.Kubectl("get", "pdb", "--no-headers"))
		if len(row) < 4 || strings.Join(row[:4], " ") != want {
			return Saw(strings.Join(row, " "))
		}
		return ""
	})
}
