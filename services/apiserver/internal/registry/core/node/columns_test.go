package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// Readiness, cordoning and roles show.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, columns, func() *corev1.Node { return &corev1.Node{} })
}
