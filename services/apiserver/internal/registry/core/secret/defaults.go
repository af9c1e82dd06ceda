package secret

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/defaults"
)

// Default sets the type of a Secret without one and moves stringData, which only requests have, into data. It runs on
// every decoded object, so that a patch of stringData changes the stored data.
func Default(s *corev1.Secret) {
	defaults.Set(&s.Type, corev1.SecretTypeOpaque)
	if len(s.StringData) == 0 {
		return
	}
	if s.Data == nil {
		s.Data = make(map[string][]byte, len(s.StringData))
	}
	for key, value := range s.StringData {
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}
