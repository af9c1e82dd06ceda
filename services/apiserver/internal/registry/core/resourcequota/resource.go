// Package resourcequota is the resource ResourceQuota of the core group: what all objects of a namespace together may
// use.
//
//keelson:decision
package resourcequota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the ResourceQuota with its /status.
var Resource = resource.Resource[*corev1.ResourceQuota]{
	Name:       "resourcequotas",
	Singular:   "resourcequota",
	ShortNames: []string{"quota"},
	New:        func() *corev1.ResourceQuota { return &corev1.ResourceQuota{} },
	NewList:    func() runtime.Object { return &corev1.ResourceQuotaList{} },
	Spec:       resource.PartOf(func(q *corev1.ResourceQuota) *corev1.ResourceQuotaSpec { return &q.Spec }),
	Status:     resource.PartOf(func(q *corev1.ResourceQuota) *corev1.ResourceQuotaStatus { return &q.Status }),
	// The field's quotas do not count their generation.
	NoGeneration:   true,
	Strategy:       resource.Strategy[*corev1.ResourceQuota]{Validate: Validate, ValidateUpdate: ValidateUpdate},
	StatusStrategy: resource.Strategy[*corev1.ResourceQuota]{ValidateUpdate: ValidateStatusUpdate},
	Columns: resource.NewColumns(
		resource.NameColumn[*corev1.ResourceQuota](),
		resource.Column("Request", "string",
			"Request represents a minimum amount of cpu/memory that a container may consume.",
			func(q *corev1.ResourceQuota) any { return usage(q, false) }),
		resource.Column("Limit", "string",
			"Limits control the maximum amount of cpu/memory that a container may use independent of contention on "+
				"the node.",
			func(q *corev1.ResourceQuota) any { return usage(q, true) }),
		resource.AgeColumn[*corev1.ResourceQuota](),
	),
}

// usage shows what is used of what, either of the limits or of all else.
func usage(q *corev1.ResourceQuota, limits bool) string {
	var shown []string
	for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
		if strings.HasPrefix(string(name), "limits.") != limits {
			continue
		}
		used, hard := q.Status.Used[name], q.Status.Hard[name]
		shown = append(shown, fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String()))
	}
	return strings.Join(shown, ", ")
}
