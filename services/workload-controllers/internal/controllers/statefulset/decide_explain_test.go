package statefulset

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
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
	// The status is as the pass before left it.
	seen := func(in Input) Input {
		in.Set.Status = Decide(in).Status
		return in
	}
	going := newSet(replicas(1), func(s *appsv1.StatefulSet) { s.DeletionTimestamp = &metav1.Time{Time: now} })
	blocked := input(newSet(replicas(1), claimed), "", "www-web-0")
	for _, claim := range blocked.Claims {
		claim.DeletionTimestamp = &metav1.Time{Time: now}
	}
	for name, row := range map[string]struct {
		in   Input
		want []string
	}{
		"settled": {seen(input(newSet(replicas(2)), "0r1 1r1", "")), []string{"waits for nothing: 2 Pods available"}},
		"the first is not ready": {input(newSet(replicas(2)), "0n1", ""),
			[]string{"waits for Pod web-0 to be available",
				"in order, the Pods after it wait too", "since "}},
		"in parallel": {input(newSet(replicas(2), parallel), "0n1", ""), []string{"creates Pod web-1",
			"Pod web-0 to be available"}},
		"minReady": {input(newSet(replicas(1), minReady(7200)), "0r1", ""),
			[]string{"it has been ready for spec.minReadySeconds, at "}},
		"one is going": {input(newSet(replicas(1)), "0t1", ""), []string{"waits for Pod web-0 to be gone",
			"Terminating: "}},
		"too many": {input(newSet(replicas(1)), "0r1 1r1", ""), []string{"deletes Pod web-1 (ScaledDown)"}},
		"too many, one not ready": {input(newSet(replicas(0)), "0n1 1r1", ""), []string{
			"waits for Pod web-0 to be available"}},
		"too many, one going": {input(newSet(replicas(1)), "0r1 1t1", ""), []string{"waits for Pod web-1 to be gone"}},
		"updated": {input(newSet(replicas(2), updated(2)), "0r1 1r1", ""), []string{"deletes Pod web-1 (Outdated)",
			"RollingUpdate: waits for 2 Pods of an earlier revision"}},
		"updated on delete": {input(newSet(replicas(1), updated(2), onDelete), "0r1", ""), []string{
			"OnDelete: waits for 1 Pod of an earlier revision to go; it ends when somebody deletes them"}},
		"updated from a partition on": {input(newSet(replicas(2), updated(2), partition(1)), "0r1 1r2", ""), []string{
			"Partition: waits for 1 Pod of an earlier revision", "those from ordinal 1 on are available"}},
		"its claim is going": {blocked, []string{"waits for PersistentVolumeClaim www-web-0 to be gone since "}},
		"going":              {input(going, "", ""), []string{"waits for its deletion to finish since "}},
	} {
		said := said(row.in, Decide(row.in))
		for _, want := range row.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in\n%s", name, want, said)
			}
		}
	}
}
