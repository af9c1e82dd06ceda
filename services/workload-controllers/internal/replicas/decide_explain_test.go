package replicas

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/workload-controllers/internal/pace"
	"keelson.dev/services/workload-controllers/internal/podset"
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
	refused := func(set *appsv1.ReplicaSet) {
		set.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure,
			Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota"}}
	}
	for name, row := range map[string]struct {
		in   Input
		want []string
	}{
		"settled": {Input{Now: now, ReplicaSet: newSet(2), Counts: podset.Counts{Active: 2, Ready: 2, Available: 2}},
			[]string{"waits for nothing: 2 Pods available"}},
		"Pods are missing": {Input{Now: now, ReplicaSet: newSet(2)}, []string{"in its next pass creates 2 Pods"}},
		"Pods are refused": {Input{Now: now, ReplicaSet: newSet(2, refused)}, []string{"creates 2 Pods",
			"FailedCreate: waits for the apiserver to take its Pods: exceeded quota"}},
		"too many": {Input{Now: now, ReplicaSet: newSet(1), Counts: podset.Counts{Active: 2, Ready: 2, Available: 2},
			Candidates: candidates(2)}, []string{"deletes 1 Pod"}},
		"not ready": {Input{Now: now, ReplicaSet: newSet(2), Counts: podset.Counts{Active: 2, Ready: 1, Available: 1}},
			[]string{"waits for 1 Pod to be ready", "NotReady: "}},
		"not available": {Input{Now: now, ReplicaSet: newSet(2), Counts: podset.Counts{Active: 2, Ready: 2,
			Available:     1,
			NextAvailable: now.Add(time.Second)}}, []string{"waits for 1 Pod to be ready for spec.minReadySeconds",
			"it ends when it is 2023-11-14T22:13:21Z"}},
		"those made last have failed": {Input{Now: now, ReplicaSet: newSet(1), Made: []pace.Pod{{Created: now,
			Phase: corev1.PodFailed}}},
			[]string{"those made last have failed; it ends when it is 2023-11-14T22:13:22Z"}},
		"going": {Input{Now: now, ReplicaSet: newSet(1, deleting)}, []string{
			"waits for its deletion to finish since 2023-11-14T22:13:20Z"}},
		"whose the Pods are": {Input{Now: now, ReplicaSet: newSet(1), Orphans: []*corev1.Pod{{}}},
			[]string{"in its next pass adopts 1 Pod"}},
	} {
		said := said(row.in, Decide(row.in))
		for _, want := range row.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in\n%s", name, want, said)
			}
		}
	}
}
