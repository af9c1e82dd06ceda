package cronjob

import (
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
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
	off := hello(func(c *batchv1.CronJob) { c.Spec.Suspend = ptr.To(true) })
	going := hello(func(c *batchv1.CronJob) { c.DeletionTimestamp = &metav1.Time{Time: at("08:00:00").Time} })
	running := run("08:00:00", "")
	nowhere := input("08:00:10", hello())
	nowhere.LocationError = errors.New("unknown time zone Nowhere")
	for name, row := range map[string]struct {
		in   Input
		want []string
	}{
		"until the next time": {input("08:00:10", hello(last("08:00:00")), run("08:00:00", batchv1.JobComplete)),
			[]string{`waits for the next time of its schedule "* * * * *"`,
				"since 2026-01-05T08:00:00Z; it ends when it is 2026-01-05T08:01:00Z"}},
		"due":       {input("08:00:00", hello()), []string{"in its next pass starts Job hello-"}},
		"suspended": {input("08:00:10", off), []string{"waits for the end of its suspension", "spec.suspend is false"}},
		"one is running": {input("08:01:00", hello(policy(batchv1.ForbidConcurrent), last("08:00:00"),
			active(running)), running), []string{
			"JobAlreadyActive: waits for 1 running Job to finish: spec.concurrencyPolicy is Forbid"}},
		"one is replaced": {input("08:01:00", hello(policy(batchv1.ReplaceConcurrent), last("08:00:00"),
			active(running)), running), []string{"deletes 1 running Job that it replaces", "starts Job "}},
		"no such zone": {nowhere, []string{"UnknownTimeZone: waits for somebody to look: ",
			"unknown time zone Nowhere"}},
		"no schedule": {input("08:00:10", hello(schedule("often"))),
			[]string{"UnparseableSchedule: waits for somebody"}},
		"going": {input("08:00:10", going),
			[]string{"waits for its deletion to finish since 2026-01-05T08:00:00Z"}},
	} {
		said := said(row.in, Decide(row.in))
		for _, want := range row.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in\n%s", name, want, said)
			}
		}
	}
}
