package configmap

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// Both kinds of data count.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, columns, func() *corev1.ConfigMap { return &corev1.ConfigMap{} })
}
