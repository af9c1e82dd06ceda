package event

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// POD-223, DEP-056: both forms show when, how often and from where.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, columns, func() *corev1.Event { return &corev1.Event{} })
}
