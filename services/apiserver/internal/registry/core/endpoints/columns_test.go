package endpoints

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// Three addresses show, the rest is counted.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, columns, func() *corev1.Endpoints { return &corev1.Endpoints{} })
}
