package scenario

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// ServiceCIDR adds a range to those of Services' addresses and takes it away again: it gives addresses out once it is
// ready and none once it is to go, and it stays as long as a Service has one of its addresses.
func ServiceCIDR(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	ranges := w.Client.NetworkingV1().ServiceCIDRs()
	const first, second = "10.97.5.5", "10.97.5.6"
	more := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.97.5.0/28"}}}
	err := createServiceAt(w, "early", first)
	if err == nil || !strings.Contains(err.Error(), "not in the valid range") {
		t.Fatalf("an address of no range: %v", err)
	}
	if _, err := ranges.Create(w.Context(), more, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitServiceCIDR(w, metav1.ConditionTrue, "Ready")
	w.Await("an address of the range", func() Answer {
		if err := createServiceAt(w, "web", first); err != nil {
			return Saw(err.Error())
		}
		return ""
	})
	if err := ranges.Delete(w.Context(), more.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitServiceCIDR(w, metav1.ConditionFalse, "Terminating")
	w.Await("no more addresses", func() Answer {
		if err := createServiceAt(w, "late", second); err == nil {
			t.Fatal("a range that is to go gives an address out")
		} else if !strings.Contains(err.Error(), "not in the valid range") {
			return Saw(err.Error())
		}
		return ""
	})
	// Its controller looks ten seconds after the delete for the first time.
	since := time.Now()
	w.Await("the range to wait for its address", func() Answer {
		awaitServiceCIDR(w, metav1.ConditionFalse, "Terminating")
		if time.Since(since) < 13*time.Second {
			return "not long enough yet"
		}
		return ""
	})
	w.Kubectl("delete", "service", "web")
	w.Await("the range to go", func() Answer {
		switch _, err := ranges.Get(w.Context(), more.Name, metav1.GetOptions{}); {
		case apierrors.IsNotFound(err):
			return ""
		case err != nil:
			return Saw(err.Error())
		}
		return "it is there"
	})
}

// createServiceAt makes a Service at an address.
func createServiceAt(w *World, name, ip string) error {
	_, err := w.Client.CoreV1().Services(w.Namespace).Create(w.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	return err
}

// awaitServiceCIDR waits for the condition Ready of the world's range, and for the finalizer that keeps it.
func awaitServiceCIDR(w *World, status metav1.ConditionStatus, reason string) {
	w.Helper()
	w.Await("the range to be "+reason, func() Answer {
		r, err := w.Client.NetworkingV1().ServiceCIDRs().Get(w.Context(), w.Namespace, metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		ready := meta.FindStatusCondition(r.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
		if ready == nil || ready.Status != status || ready.Reason != reason || len(r.Finalizers) != 1 {
			return Sawf("conditions %+v, finalizers %v", r.Status.Conditions, r.Finalizers)
		}
		return ""
	})
}
