package bootstrap

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// The day since which uses are recorded is written once, and again where it is none.
func TestTracking(t *testing.T) {
	today := time.Now().UTC().Format(time.DateOnly)
	const name = "kube-apiserver-legacy-service-account-token-tracking"
	for found, want := range map[string]string{"": today, "soon": today, "2025-01-31": "2025-01-31"} {
		b := New(Config{Client: fake.NewClientset()})
		maps := b.Client.CoreV1().ConfigMaps("kube-system")
		if found != "" {
			if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name},
				Data: map[string]string{"since": found}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.ensureTracking(t.Context()); err != nil {
			t.Fatal(err)
		}
		if have, err := maps.Get(t.Context(), name, metav1.GetOptions{}); err != nil || have.Data["since"] != want {
			t.Errorf("%q has become %v, %v", found, have.Data, err)
		}
	}
}
