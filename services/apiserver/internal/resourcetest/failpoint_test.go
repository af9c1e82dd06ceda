package resourcetest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/servertest"
)

// A client that got no answer does not know whether its Service was stored. If it was, no other Service may get its
// addresses and ports; if it was not, the client can try again.
func TestServiceWithoutAnswer(t *testing.T) {
	s := servertest.Start(t)
	ctx := t.Context()
	services := s.Client.CoreV1().Services(s.Namespace(t, "services"))
	// The address comes first, then the Service.
	const address, service = "1*error(no answer)", "1*off->1*error(no answer)"
	arm := func(where, which string) {
		t.Helper()
		if err := failpoint.Arm("apiserver/store.create."+where, which); err != nil {
			t.Fatalf("arming: %v", err)
		}
	}
	t.Cleanup(func() {
		failpoint.Disarm("apiserver/store.create.before")
		failpoint.Disarm("apiserver/store.create.after")
	})

	arm("after", service)
	if _, err := services.Create(ctx, newService("stored", corev1.ServiceTypeNodePort),
		metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Fatalf("the failpoint did not work: %v", err)
	}
	stored := must[*corev1.Service](t, "it was stored all the same")(services.Get(ctx, "stored", metav1.GetOptions{}))
	thief := newService("thief", corev1.ServiceTypeNodePort)
	thief.Spec.ClusterIP = stored.Spec.ClusterIP
	_, err := services.Create(ctx, thief, metav1.CreateOptions{})
	refusedAt(t, err, "spec.clusterIPs[0]")
	thief.Spec.ClusterIP, thief.Spec.Ports[0].NodePort = "", stored.Spec.Ports[0].NodePort
	_, err = services.Create(ctx, thief, metav1.CreateOptions{})
	refusedAt(t, err, "spec.ports[0].nodePort")

	arm("before", service)
	if _, err := services.Create(ctx, newService("lost", corev1.ServiceTypeNodePort),
		metav1.CreateOptions{}); err == nil {
		t.Fatal("the failpoint did not work")
	}
	if _, err := services.Get(ctx, "lost", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it was not stored: %v", err)
	}
	must[*corev1.Service](t, "trying again")(services.Create(ctx, newService("lost", corev1.ServiceTypeNodePort),
		metav1.CreateOptions{}))

	arm("after", address)
	if _, err := services.Create(ctx, newService("again", corev1.ServiceTypeClusterIP),
		metav1.CreateOptions{}); err == nil {
		t.Fatal("the failpoint did not work")
	}
	must[*corev1.Service](t, "trying again")(services.Create(ctx, newService("again", corev1.ServiceTypeClusterIP),
		metav1.CreateOptions{}))
}
