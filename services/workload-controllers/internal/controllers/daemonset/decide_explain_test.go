package daemonset

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// said returns the summary and facts of an account.
func said(in Input, plan Plan) string {
	e := account(in, plan).Explanation()
	lines := []string{e.Summary}
	for _, fact := range e.Facts {
		lines = append(lines, fact.Reason+": "+fact.Message)
	}
	return strings.Join(lines, "\n")
}

func TestAccount(t *testing.T) {
	failing := inputOf(newSet(), alike(runs, 1), newPod("a", "n1", "agent:2", ended(corev1.PodFailed)))
	failing.Failures = map[string]Failure{"n1": {Count: 2, Last: now, Generation: 3}}
	going := newSet(func(set *appsv1.DaemonSet) { set.DeletionTimestamp = &metav1.Time{Time: now} })
	for name, row := range map[string]struct {
		in   Input
		want []string
	}{
		"settled": {inputOf(newSet(), alike(runs, 1), newPod("a", "n1", "agent:2")), []string{
			"waits for nothing: an available Pod of the current template on each of 1 node"}},
		"a node has none": {inputOf(newSet(), alike(runs, 2), newPod("a", "n1", "agent:2")), []string{
			"in its next pass creates a Pod on 1 node", "waits for an available Pod on 1 of 2 nodes"}},
		"not ready": {inputOf(newSet(), alike(runs, 1), newPod("a", "n1", "agent:2", unready)), []string{
			"waits for an available Pod on 1 of 1 node"}},
		"updated": {inputOf(newSet(), alike(runs, 2), newPod("a", "n1", "agent:1"), newPod("b", "n2", "agent:1")),
			[]string{"deletes Pod ", "(Outdated)",
				"RollingUpdate: waits for 2 nodes to have a Pod of the current template"}},
		"updated on delete": {inputOf(newSet(onDelete), alike(runs, 1), newPod("a", "n1", "agent:1")), []string{
			"OnDelete: waits for 1 Pod of an earlier template to go"}},
		"failing": {failing,
			[]string{"FailedPod: waits for the time to replace what fails on node n1 (2 times in a row)",
				"it ends when it is " + now.Add(2*time.Second).UTC().Format(time.RFC3339)}},
		"going": {inputOf(going, alike(runs, 1)),
			[]string{"waits for its deletion to finish since 2023-11-14T22:13:20Z"}},
	} {
		said := said(row.in, Decide(row.in))
		for _, want := range row.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in\n%s", name, want, said)
			}
		}
	}
}
