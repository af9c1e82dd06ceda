package ttlafterfinished

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"keelson.dev/kit/explain"
)

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	ttl := in.Job.Spec.TTLSecondsAfterFinished
	switch finished := finishedAt(in.Job); {
	case plan.Delete:
		return explain.Account{Does: []string{fmt.Sprintf("deletes it: it has been finished for longer than its "+
			"ttlSecondsAfterFinished of %d", *ttl)}}
	case !plan.Wake.IsZero():
		return explain.Account{Waits: []explain.Wait{{Since: finished, Reason: "TTLAfterFinished",
			For:  fmt.Sprintf("its ttlSecondsAfterFinished of %d to be over, and then deletes it", *ttl),
			Ends: "it is " + explain.At(plan.Wake)}}}
	}
	return explain.Account{Settled: standing(in.Job)}
}

// standing says why nothing is to be done about a Job.
func standing(job *batchv1.Job) string {
	switch {
	case job.DeletionTimestamp != nil:
		return "it is being deleted"
	case job.Spec.TTLSecondsAfterFinished == nil:
		return "it has no ttlSecondsAfterFinished, and stays"
	}
	return fmt.Sprintf("it has not finished; then it stays for its ttlSecondsAfterFinished of %d",
		*job.Spec.TTLSecondsAfterFinished)
}
