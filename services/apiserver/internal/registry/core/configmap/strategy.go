package configmap

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

var strategy = rest.Strategy[*corev1.ConfigMap]{
	Validate:       Validate,
	ValidateUpdate: ValidateUpdate,
}
