package sizes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/kit/noderesources"
)

// Lacks describes what is insufficient on a node.
func Lacks(lack *noderesources.Insufficient) string {
	return fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", lack.Name,
		Amount(lack.Name, lack.Requested), Amount(lack.Name, lack.Used), Amount(lack.Name, lack.Capacity))
}

// Amount returns a quantity in the unit of messages: thousandths of a core, else whole units.
func Amount(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}
