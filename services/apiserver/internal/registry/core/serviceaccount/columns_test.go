package serviceaccount

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// The secrets are counted.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, columns, func() *corev1.ServiceAccount { return &corev1.ServiceAccount{} })
}
