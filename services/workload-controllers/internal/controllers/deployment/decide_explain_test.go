package deployment

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	of := func(d *appsv1.Deployment, sets ...*appsv1.ReplicaSet) Input {
		return Input{Now: now, Deployment: d, ReplicaSets: sets}
	}
	// before is the status that an earlier pass left a minute ago, perhaps with another reason.
	before := func(in Input, reason string) Input {
		in.Deployment.Status = Decide(in).Status
		for i := range in.Deployment.Status.Conditions {
			c := &in.Deployment.Status.Conditions[i]
			c.LastUpdateTime = metav1.NewTime(now.Add(-time.Minute))
			if c.Type == appsv1.DeploymentProgressing && reason != "" {
				c.Reason = reason
			}
		}
		return in
	}
	full, half := newDeployment(2, atRevision(2)), newDeployment(4, atRevision(2))
	late, still := newDeployment(2, atRevision(2)), newDeployment(2, paused)
	anew := newDeployment(1, recreate)
	lingers := of(anew, newSet(anew, 1, 0, 0))
	lingers.Unfinished = map[types.UID]int{"rs-1": 3}
	going := newDeployment(1)
	going.DeletionTimestamp = &metav1.Time{Time: now}
	for name, row := range map[string]struct {
		in   Input
		want []string
	}{
		"settled": {before(of(full, newSet(full, 2, 2, 2)), reasonAvailable),
			[]string{"waits for nothing: 2 Pods of the current template available"}},
		"new": {of(newDeployment(2)), []string{"in its next pass creates ReplicaSet web-",
			"with 2 replicas (NewTemplate)"}},
		"under way": {before(of(half, newSet(half, 1, 3, 3), newSet(half, 2, 2, 0)), reasonUpdated), []string{
			"waits for 4 replicas of the current template, available and alone", "since 2023-11-14T22:12:20Z",
			"without progress it is reported as ProgressDeadlineExceeded at 2023-11-14T22:22:21Z"}},
		"moving on": {of(half, newSet(half, 1, 3, 3), newSet(half, 2, 2, 2)), []string{"scales ReplicaSet web-",
			"(Rollout)"}},
		"too late": {before(of(late, newSet(late, 2, 2, 0)), reasonTimedOut),
			[]string{"ProgressDeadlineExceeded: waits for 2 replicas",
				"since 2023-11-14T22:12:20Z"}},
		"paused": {before(of(still, newSet(still, 2, 2, 2)), ""), []string{
			"waits for the end of its pause since 2023-11-14T22:12:20Z; it ends when spec.paused is false"}},
		"old Pods linger": {lingers, []string{"waits for 3 old Pods to end", "Recreate: "}},
		"going":           {of(going), []string{"waits for its deletion to finish since 2023-11-14T22:13:20Z"}},
	} {
		said := said(row.in, Decide(row.in))
		for _, want := range row.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in\n%s", name, want, said)
			}
		}
	}
}
