package serviceaccount

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestKeepSecretNames(t *testing.T) {
	sa := &corev1.ServiceAccount{Secrets: []corev1.ObjectReference{{Kind: "Secret", Namespace: "elsewhere", Name: "a",
		FieldPath: "x"}}}
	if keepSecretNames(sa); sa.Secrets[0] != (corev1.ObjectReference{Name: "a"}) {
		t.Errorf("kept %+v", sa.Secrets[0])
	}
}
