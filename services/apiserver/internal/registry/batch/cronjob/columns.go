package cronjob

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/registry/table"
)

var (
	specHelp   = batchv1.CronJobSpec{}.SwaggerDoc()
	statusHelp = batchv1.CronJobStatus{}.SwaggerDoc()
)

// columns are what kubectl get cronjobs prints.
var columns = rest.NewColumns(
	rest.NameColumn[*batchv1.CronJob](),
	rest.Column("Schedule", "string", specHelp["schedule"], func(c *batchv1.CronJob) any { return c.Spec.Schedule }),
	rest.Column("Timezone", "string", specHelp["timeZone"],
		func(c *batchv1.CronJob) any { return ptr.Deref(c.Spec.TimeZone, table.None) }),
	rest.Column("Suspend", "boolean", specHelp["suspend"], suspendCell),
	rest.Column("Active", "integer", statusHelp["active"],
		func(c *batchv1.CronJob) any { return int64(len(c.Status.Active)) }),
	lastScheduleColumn(),
	rest.AgeColumn[*batchv1.CronJob](),
	rest.Column("Containers", "string", "Names of each container in the template.",
		func(c *batchv1.CronJob) any {
			return table.ContainerNames(c.Spec.JobTemplate.Spec.Template.Spec.Containers)
		}).Wide(),
	rest.Column("Images", "string", "Images referenced by each container in the template.",
		func(c *batchv1.CronJob) any {
			return table.ContainerImages(c.Spec.JobTemplate.Spec.Template.Spec.Containers)
		}).Wide(),
	rest.Column("Selector", "string", batchv1.JobSpec{}.SwaggerDoc()["selector"],
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

func lastScheduleColumn() rest.TableColumn[*batchv1.CronJob] {
	column := rest.Column("Last Schedule", "string", statusHelp["lastScheduleTime"],
		func(*batchv1.CronJob) any { return nil })
	column.Cell = func(c *batchv1.CronJob, now time.Time) any {
		if c.Status.LastScheduleTime == nil {
			return table.None
		}
		return rest.Age(*c.Status.LastScheduleTime, now)
	}
	return column
}
