// Package dynamicresources keeps Pods that claim devices from running without them.
//
//keelson:decision
package dynamicresources

import (
	"cmp"

	"keelson.dev/kit/podview"
	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Rule refuses every node to a Pod with spec.resourceClaims, and says what keeps it from their devices.
func Rule() rules.Rule {
	return rules.Rule{Name: "DynamicResources",
		Key: func(b []byte, p rules.Pod) []byte { return append(b, reason(p)...) },
		Filter: func(p rules.Pod) *rules.Filter {
			text := reason(p)
			if text == "" {
				return nil
			}
			return &rules.Filter{Texts: []string{text}, Pins: &rules.Pins{}, Whole: true,
				Judge: rules.ByShape(func(columns.View) rules.Reasons { return 1 })}
		}}
}

// reason is why the Pod waits; empty for one that claims no devices.
func reason(p rules.Pod) string {
	if len(p.Spec.ResourceClaims) == 0 {
		return ""
	}
	return cmp.Or(p.Devices, podview.Unprepared)
}
