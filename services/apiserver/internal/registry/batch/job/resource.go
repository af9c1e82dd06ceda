// Package job is the API resource jobs of group batch: Pods that run to their end, and how often they may fail.
package job

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

// Resource is the Job with its /status.
var Resource = rest.Resource[*batchv1.Job]{
	Group:      batchv1.GroupName,
	Name:       "jobs",
	Singular:   "job",
	Categories: []string{"all"},
	New:        func() *batchv1.Job { return &batchv1.Job{} },
	NewList:    func() runtime.Object { return &batchv1.JobList{} },
	Default:    Default,
	Spec:       rest.PartOf(func(j *batchv1.Job) *batchv1.JobSpec { return &j.Spec }),
	Status:     rest.PartOf(func(j *batchv1.Job) *batchv1.JobStatus { return &j.Status }),
	Strategy: rest.Strategy[*batchv1.Job]{
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
		Dependents: genericrest.OrphanDependents,
	},
	StatusStrategy: rest.Strategy[*batchv1.Job]{ValidateUpdate: ValidateStatusUpdate},
	Wrap:           func(s *rest.Storage) genericrest.Storage { return &storage{s} },
	Columns:        columns,
	Fields: []rest.Field[*batchv1.Job]{
		{Label: "status.successful", Value: func(j *batchv1.Job) string {
			return strconv.Itoa(int(j.Status.Succeeded))
		}},
	},
}
