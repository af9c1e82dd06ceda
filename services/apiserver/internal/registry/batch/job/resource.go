// Package job is the API resource jobs of group batch: Pods that run to their end, and how often they may fail.
//
//keelson:decision
package job

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the Job with its /status.
var Resource = resource.Resource[*batchv1.Job]{
	Group:      batchv1.GroupName,
	Name:       "jobs",
	Singular:   "job",
	Categories: []string{"all"},
	New:        func() *batchv1.Job { return &batchv1.Job{} },
	NewList:    func() runtime.Object { return &batchv1.JobList{} },
	Default:    Default,
	Spec:       resource.PartOf(func(j *batchv1.Job) *batchv1.JobSpec { return &j.Spec }),
	Status:     resource.PartOf(func(j *batchv1.Job) *batchv1.JobStatus { return &j.Status }),
	Strategy: resource.Strategy[*batchv1.Job]{
		Name: validName,
		PrepareForCreate: func(j *batchv1.Job) {
			DropUnserved(&j.Spec)
			generateSelector(j)
		},
		PrepareForUpdate: func(j, _ *batchv1.Job) { DropUnserved(&j.Spec) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
		Warnings:         warnings,
		WarningsOnUpdate: warningsOnUpdate,
		// As in its first version: who deletes without a word about the Pods keeps them.
		OrphanDependents: true,
		WarningsOnDelete: warningsOnDelete,
	},
	StatusStrategy: resource.Strategy[*batchv1.Job]{ValidateUpdate: ValidateStatusUpdate},
	Columns:        columns,
	Fields: []resource.Field[*batchv1.Job]{
		{Label: "status.successful", Value: func(j *batchv1.Job) string {
			return strconv.Itoa(int(j.Status.Succeeded))
		}},
	},
}
