package job

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

// columns are what kubectl get jobs prints.
var columns = resource.NewColumns(
	resource.NameColumn[*batchv1.Job](),
	resource.Column("Status", "string", "Status of the job.", statusCell),
	resource.Column("Completions", "string", batchv1.JobStatus{}.SwaggerDoc()["succeeded"], completionsCell),
	durationColumn(),
	resource.AgeColumn[*batchv1.Job](),
	resource.Column("Containers", "string", "Names of each container in the template.",
		func(j *batchv1.Job) any { return table.ContainerNames(j.Spec.Template.Spec.Containers) }).Wide(),
	resource.Column("Images", "string", "Images referenced by each container in the template.",
		func(j *batchv1.Job) any { return table.ContainerImages(j.Spec.Template.Spec.Containers) }).Wide(),
	resource.Column("Selector", "string", batchv1.JobSpec{}.SwaggerDoc()["selector"],
		func(j *batchv1.Job) any { return table.Selector(j.Spec.Selector) }).Wide(),
)

// statusCell names the state that says most about the Job.
func statusCell(j *batchv1.Job) any {
	switch {
	case isTrue(j, batchv1.JobComplete):
		return "Complete"
	case isTrue(j, batchv1.JobFailed):
		return "Failed"
	case j.DeletionTimestamp != nil:
		return "Terminating"
	case isTrue(j, batchv1.JobSuspended):
		return "Suspended"
	case isTrue(j, batchv1.JobFailureTarget):
		return "FailureTarget"
	case isTrue(j, batchv1.JobSuccessCriteriaMet):
		return "SuccessCriteriaMet"
	}
	return "Running"
}

func completionsCell(j *batchv1.Job) any {
	if j.Spec.Completions != nil {
		return fmt.Sprintf("%d/%d", j.Status.Succeeded, *j.Spec.Completions)
	}
	if parallelism := ptr.Deref(j.Spec.Parallelism, 0); parallelism > 1 {
		return fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, parallelism)
	}
	return fmt.Sprintf("%d/1", j.Status.Succeeded)
}

// durationColumn tells how long the Job has run; it stands still when the Job is complete.
func durationColumn() resource.TableColumn[*batchv1.Job] {
	column := resource.Column("Duration", "string", "Time required to complete the job.",
		func(*batchv1.Job) any { return nil })
	column.Cell = func(j *batchv1.Job, now time.Time) any {
		if j.Status.StartTime == nil {
			return ""
		}
		if j.Status.CompletionTime != nil {
			now = j.Status.CompletionTime.Time
		}
		return duration.HumanDuration(now.Sub(j.Status.StartTime.Time))
	}
	return column
}
