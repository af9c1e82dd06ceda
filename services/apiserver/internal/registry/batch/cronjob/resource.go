// Package cronjob is the API resource cronjobs of group batch: a Job made again and again by a schedule.
//
//keelson:decision
package cronjob

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/defaults"
	"keelson.dev/services/apiserver/internal/registry/batch/job"
	"keelson.dev/services/apiserver/internal/resource"
)

// The values of the fields that a client may leave out.
const (
	defaultSuccessfulJobsHistoryLimit = 3
	defaultFailedJobsHistoryLimit     = 1
)

// Resource is the CronJob with its /status.
var Resource = resource.Resource[*batchv1.CronJob]{
	Group:      batchv1.GroupName,
	Name:       "cronjobs",
	Singular:   "cronjob",
	ShortNames: []string{"cj"},
	Categories: []string{"all"},
	New:        func() *batchv1.CronJob { return &batchv1.CronJob{} },
	NewList:    func() runtime.Object { return &batchv1.CronJobList{} },
	Default:    Default,
	Spec:       resource.PartOf(func(c *batchv1.CronJob) *batchv1.CronJobSpec { return &c.Spec }),
	Status:     resource.PartOf(func(c *batchv1.CronJob) *batchv1.CronJobStatus { return &c.Status }),
	Strategy: resource.Strategy[*batchv1.CronJob]{
		Name:             validName,
		PrepareForCreate: func(c *batchv1.CronJob) { job.DropUnserved(&c.Spec.JobTemplate.Spec) },
		PrepareForUpdate: func(c, _ *batchv1.CronJob) { job.DropUnserved(&c.Spec.JobTemplate.Spec) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
		Warnings:         warnings,
		WarningsOnUpdate: warningsOnUpdate,
	},
	Columns: columns,
}

// Default fills in the fields that c leaves out. Its Jobs get their defaults when they are made.
func Default(c *batchv1.CronJob) {
	spec := &c.Spec
	job.SetTemplateDefaults(&spec.JobTemplate.Spec)
	defaults.Set(&spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
	defaults.SetPtr(&spec.Suspend, false)
	defaults.SetPtr(&spec.SuccessfulJobsHistoryLimit, defaultSuccessfulJobsHistoryLimit)
	defaults.SetPtr(&spec.FailedJobsHistoryLimit, defaultFailedJobsHistoryLimit)
}
