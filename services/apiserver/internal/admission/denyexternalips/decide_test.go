package denyexternalips

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func with(ips ...string) *corev1.Service {
	return &corev1.Service{Spec: corev1.ServiceSpec{ExternalIPs: ips}}
}

// Only what is new is refused.
func TestDecide(t *testing.T) {
	for _, r := range []struct {
		name         string
		updated, old *corev1.Service
		denied       bool
	}{
		{"a new Service without any", with(), nil, false},
		{"a new Service with one", with("192.0.2.1"), nil, true},
		{"none before", with("192.0.2.1"), with(), true},
		{"the same", with("192.0.2.1"), with("192.0.2.1"), false},
		{"the same, in another order", with("192.0.2.2", "192.0.2.1"), with("192.0.2.1", "192.0.2.2"), false},
		{"the same, in another form", with("2001:db8:0::1"), with("2001:db8::1"), false},
		{"one less", with("192.0.2.1"), with("192.0.2.1", "192.0.2.2"), false},
		{"one more", with("192.0.2.1", "192.0.2.2"), with("192.0.2.1"), true},
		{"another", with("192.0.2.2"), with("192.0.2.1"), true},
		{"none any more", with(), with("192.0.2.1"), false},
	} {
		if err := decide(r.updated, r.old); (err != nil) != r.denied {
			t.Errorf("%s: %v", r.name, err)
		}
	}
}
