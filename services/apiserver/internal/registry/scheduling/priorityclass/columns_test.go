package priorityclass

import (
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// SCH-013.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, columns, func() *schedulingv1.PriorityClass { return &schedulingv1.PriorityClass{} })
}
