package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// leakedAddress is taken for a Service that was never stored.
type leakedAddress struct {
	*scenario.World
	ip string
}

// leakAddress ends the apiserver by SIGKILL between an address and the Service that it is taken for. No Service is
// given the address for now, since the request might have gone on; the same Service, asked for again, gets another one.
func leakAddress(t *testing.T, m *processes.Mesh) leakedAddress {
	t.Helper()
	leaked := leakedAddress{World: scenario.In(t, m)}
	die(leaked.World, m, mesh.APIServer, "apiserver/ipaddress.create.after=crash", func() string {
		if err := leaked.create("lost", ""); err != nil {
			return err.Error()
		}
		return "the Service was made"
	})
	leaked.Await("the address of no Service", func() scenario.Answer {
		owned, err := leaked.owned("lost")
		if err != nil {
			return scenario.Saw(err.Error())
		}
		if len(owned) != 1 {
			t.Fatalf("%d addresses are taken for the Service that was never stored, want 1", len(owned))
		}
		leaked.ip = owned[0]
		return ""
	})
	if err := leaked.create("thief", leaked.ip); err == nil ||
		!strings.Contains(err.Error(), "provided IP is already allocated") {
		t.Errorf("another Service asks for the address at once: %v", err)
	}
	if err := leaked.create("lost", ""); err != nil {
		t.Errorf("the Service is asked for again: %v", err)
	}
	if owned, err := leaked.owned("lost"); err != nil || len(owned) != 2 {
		t.Errorf("with one of its own the Service has the addresses %v, %v", owned, err)
	}
	return leaked
}

// awaitFree waits until another Service gets the address.
func (l leakedAddress) awaitFree() {
	l.Helper()
	l.Await("the leaked address to be given out", func() scenario.Answer {
		if err := l.create("thief", l.ip); err != nil {
			return scenario.Saw(err.Error())
		}
		return ""
	})
	if owned, err := l.owned("lost"); err != nil || len(owned) != 1 {
		l.Errorf("the Service of before has the addresses %v, %v, want its own", owned, err)
	}
}

// create makes a Service at an address, or at any.
func (l leakedAddress) create(name, ip string) error {
	_, err := l.Client.CoreV1().Services(l.Namespace).Create(l.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	return err
}

// owned are the addresses that are taken for a Service.
func (l leakedAddress) owned(service string) ([]string, error) {
	all, err := l.Client.NetworkingV1().IPAddresses().List(l.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, a := range all.Items {
		if *a.Spec.ParentRef == (networkingv1.ParentReference{Resource: "services", Namespace: l.Namespace,
			Name: service}) {
			names = append(names, a.Name)
		}
	}
	return names, nil
}
