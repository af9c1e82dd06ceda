// Package limitrange is the resource LimitRange of the core group: what single Pods, containers and claims of a
// namespace may ask for, and what they get that do not say.
//
//keelson:decision
package limitrange

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the LimitRange.
var Resource = resource.Resource[*corev1.LimitRange]{
	Name:       "limitranges",
	Singular:   "limitrange",
	ShortNames: []string{"limits"},
	New:        func() *corev1.LimitRange { return &corev1.LimitRange{} },
	NewList:    func() runtime.Object { return &corev1.LimitRangeList{} },
	Default:    Default,
	Strategy:   resource.Strategy[*corev1.LimitRange]{Validate: Validate, CreateOnUpdate: true},
	Columns: resource.NewColumns(
		resource.NameColumn[*corev1.LimitRange](),
		resource.Column("Created At", "date", corev1.LimitRange{}.ObjectMeta.SwaggerDoc()["creationTimestamp"],
			func(l *corev1.LimitRange) any { return l.CreationTimestamp.UTC().Format(time.RFC3339) }),
	),
}

// Default derives for containers the default limits from the maxima, and the default requests from these and from the
// minima.
func Default(l *corev1.LimitRange) {
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		item.Default = completed(item.Default, item.Max)
		item.DefaultRequest = completed(completed(item.DefaultRequest, item.Default), item.Min)
	}
}

// completed is amounts with what only others has.
func completed(amounts, others corev1.ResourceList) corev1.ResourceList {
	if amounts == nil {
		amounts = corev1.ResourceList{}
	}
	for name, amount := range others {
		if _, set := amounts[name]; !set {
			amounts[name] = amount.DeepCopy()
		}
	}
	return amounts
}
