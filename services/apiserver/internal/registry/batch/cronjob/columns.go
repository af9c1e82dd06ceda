package cronjob

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

var (
	specHelp   = batchv1.CronJobSpec{}.SwaggerDoc()
	statusHelp = batchv1.CronJobStatus{}.SwaggerDoc()
)

// columns are what kubectl get cronjobs prints.
var columns = resource.NewColumns(
	resource.NameColumn[*batchv1.CronJob](),
	resource.Column("Schedule", "string",
		specHelp["schedule"], func(c *batchv1.CronJob) any { return c.Spec.Schedule }),
	resource.Column("Timezone", "string", specHelp["timeZone"],
		func(c *batchv1.CronJob) any { return ptr.Deref(c.Spec.TimeZone, table.None) }),
	resource.Column("Suspend", "boolean", specHelp["suspend"], suspendCell),
	resource.Column("Active", "integer", statusHelp["active"],
		func(c *batchv1.CronJob) any { return int64(len(c.Status.Active)) }),
	lastScheduleColumn(),
	resource.AgeColumn[*batchv1.CronJob](),
	resource.Column("Containers", "string", "Names of each container in the template.",
		func(c *batchv1.CronJob) any {
			return table.ContainerNames(c.Spec.JobTemplate.Spec.Template.Spec.Containers)
		}).Wide(),
	resource.Column("Images", "string", "Images referenced by each container in the template.",
		func(c *batchv1.CronJob) any {
			return table.ContainerImages(c.Spec.JobTemplate.Spec.Template.Spec.Containers)
		}).Wide(),
	resource.Column("Selector", "string", batchv1.JobSpec{}.SwaggerDoc()["selector"],
		func(c *batchv1.CronJob) any { return table.Selector(c.Spec.JobTemplate.Spec.Selector) }).Wide(),
)

func suspendCell(c *batchv1.CronJob) any {
	switch suspend := c.Spec.Suspend; {
	case suspend == nil:
		return "<unset>"
	case *suspend:
		return "True"
	}
	return "False"
}

func lastScheduleColumn() resource.TableColumn[*batchv1.CronJob] {
	column := resource.Column("Last Schedule", "string", statusHelp["lastScheduleTime"],
		func(*batchv1.CronJob) any { return nil })
	column.Cell = func(c *batchv1.CronJob, now time.Time) any {
		if c.Status.LastScheduleTime == nil {
			return table.None
		}
		return resource.Age(*c.Status.LastScheduleTime, now)
	}
	return column
}
