package service

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// DEP-225, DEP-226.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, columns, func() *corev1.Service { return &corev1.Service{} })
}
