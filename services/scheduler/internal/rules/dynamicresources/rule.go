// Package dynamicresources keeps Pods that claim devices from running without them.
package dynamicresources

import (
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// unallocated is why a Pod with claims waits.
const unallocated = "nobody allocates the Pod's ResourceClaims: resource.k8s.io is not served by this cluster"

// Rule refuses every node to a Pod with spec.resourceClaims.
func Rule() rules.Rule {
	return rules.Rule{Name: "DynamicResources",
		Key: func(b []byte, p rules.Pod) []byte {
			if len(p.Spec.ResourceClaims) > 0 {
				b = append(b, 1)
			}
			return b
		},
		Filter: func(p rules.Pod) *rules.Filter {
			if len(p.Spec.ResourceClaims) == 0 {
				return nil
			}
			return &rules.Filter{Texts: []string{unallocated}, Pins: &rules.Pins{}, Whole: true,
				Judge: rules.ByShape(func(columns.View) rules.Reasons { return 1 })}
		}}
}
