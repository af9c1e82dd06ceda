package namespace

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// The phase shows.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, columns, func() *corev1.Namespace { return &corev1.Namespace{} })
}
