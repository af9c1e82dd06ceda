package secret

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// Values never show.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, columns, func() *corev1.Secret { return &corev1.Secret{} })
}
