package resourcetest

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/apiserver/internal/servertest"
)

func newService(name string, kind corev1.ServiceType) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Type: kind, Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}},
	}}
}

// DEP-225, DEP-226, POD-225.
func testServices(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	services := s.Client.CoreV1().Services(s.Namespace(t, "services"))
	// Many at a time: each gets its own. Their names begin with digits, as those of other kinds may (KEP-5311).
	const many = 40
	created := make(chan *corev1.Service, many)
	for i := range many {
		go func() {
			svc, err := services.Create(ctx, newService(fmt.Sprintf("%ds", i), corev1.ServiceTypeNodePort),
				metav1.CreateOptions{})
			if err != nil {
				t.Errorf("creating: %v", err)
			}
			created <- svc
		}()
	}
	seen := map[string]bool{}
	for range many {
		svc := <-created
		if t.Failed() {
			return
		}
		port := fmt.Sprint(svc.Spec.Ports[0].NodePort)
		if svc.Spec.ClusterIP == "" || seen[svc.Spec.ClusterIP] || seen[port] || svc.Spec.Ports[0].NodePort < 30000 {
			t.Fatalf("%s got %s and %s", svc.Name, svc.Spec.ClusterIP, port)
		}
		seen[svc.Spec.ClusterIP], seen[port] = true, true
	}
	first := must[*corev1.Service](t, "reading")(services.Get(ctx, "0s", metav1.GetOptions{}))
	taken := newService("taken", corev1.ServiceTypeClusterIP)
	taken.Spec.ClusterIP = first.Spec.ClusterIP
	_, err := services.Create(ctx, taken, metav1.CreateOptions{})
	refusedAt(t, err, "spec.clusterIPs[0]")
	samePort := newService("same-port", corev1.ServiceTypeNodePort)
	samePort.Spec.Ports[0].NodePort = first.Spec.Ports[0].NodePort
	_, err = services.Create(ctx, samePort, metav1.CreateOptions{})
	refusedAt(t, err, "spec.ports[0].nodePort")
	outside := newService("outside", corev1.ServiceTypeClusterIP)
	outside.Spec.ClusterIP = "192.0.2.1"
	_, err = services.Create(ctx, outside, metav1.CreateOptions{})
	refusedAt(t, err, "spec.clusterIPs[0]")
	// What a deleted Service had can be had again, port and address.
	if err := services.Delete(ctx, "0s", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting: %v", err)
	}
	samePort.Spec.ClusterIP = first.Spec.ClusterIP
	if again, err := services.Create(ctx, samePort, metav1.CreateOptions{}); err != nil ||
		again.Spec.ClusterIP != first.Spec.ClusterIP {
		t.Errorf("taking over what was released: %v", err)
	}
	headless := newService("headless", corev1.ServiceTypeClusterIP)
	headless.Spec.ClusterIP = "None"
	if svc := must[*corev1.Service](t, "creating")(services.Create(ctx, headless,
		metav1.CreateOptions{})); svc.Spec.ClusterIP != "None" || svc.Spec.ClusterIPs[0] != "None" {
		t.Errorf("headless: %+v", svc.Spec)
	}
	external := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "external"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}}
	if svc := must[*corev1.Service](t, "creating")(services.Create(ctx, external,
		metav1.CreateOptions{})); svc.Spec.ClusterIP != "" || len(svc.Spec.IPFamilies) != 0 {
		t.Errorf("external name: %+v", svc.Spec)
	}
	// A refused Service keeps nothing. The port is of the band that is given out last, so that no other test gets it.
	invalid := newService("invalid", corev1.ServiceTypeNodePort)
	invalid.Spec.Ports[0].NodePort, invalid.Spec.SessionAffinity = 30001, "Sometimes"
	_, err = services.Create(ctx, invalid, metav1.CreateOptions{})
	refusedAt(t, err, "spec.sessionAffinity")
	invalid.Spec.SessionAffinity = ""
	must[*corev1.Service](t, "the same node port, without the mistake")(services.Create(ctx, invalid,
		metav1.CreateOptions{}))
}

func testServiceUpdates(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	services := s.Client.CoreV1().Services(s.Namespace(t, "service-updates"))
	stored := must[*corev1.Service](t, "creating")(services.Create(ctx, newService("web", corev1.ServiceTypeNodePort),
		metav1.CreateOptions{}))
	ip, port := stored.Spec.ClusterIP, stored.Spec.Ports[0].NodePort
	// A client that replaces the Service with its own manifest keeps address and port.
	replaced := newService("web", corev1.ServiceTypeNodePort)
	replaced.ResourceVersion = stored.ResourceVersion
	replaced.Spec.Ports = append(replaced.Spec.Ports, corev1.ServicePort{Name: "more", Port: 81})
	replaced.Spec.Ports[0].Name = "web"
	after := must[*corev1.Service](t, "replacing")(services.Update(ctx, replaced, metav1.UpdateOptions{}))
	if after.Spec.ClusterIP != ip || after.Spec.Ports[0].NodePort != port || after.Spec.Ports[1].NodePort == 0 {
		t.Errorf("replaced: %+v", after.Spec)
	}
	moved := after.DeepCopy()
	moved.Spec.ClusterIP, moved.Spec.ClusterIPs = "10.96.0.99", []string{"10.96.0.99"}
	_, err := services.Update(ctx, moved, metav1.UpdateOptions{})
	refusedAt(t, err, "spec.clusterIPs[0]")
	// Another type gives back what it has no use for, at once.
	if _, err := services.Patch(ctx, "web", types.StrategicMergePatchType,
		[]byte(`{"spec":{"type":"ExternalName","externalName":"example.com"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatalf("changing the type: %v", err)
	}
	heir := newService("heir", corev1.ServiceTypeNodePort)
	heir.Spec.ClusterIP, heir.Spec.Ports[0].NodePort = ip, port
	must[*corev1.Service](t, "taking over address and port")(services.Create(ctx, heir, metav1.CreateOptions{}))
	back := must[*corev1.Service](t, "changing the type back")(services.Patch(ctx, "web", types.StrategicMergePatchType,
		[]byte(`{"spec":{"type":"ClusterIP"}}`), metav1.PatchOptions{}))
	if back.Spec.ClusterIP == "" || back.Spec.ClusterIP == ip {
		t.Errorf("the address of the Service is %q, that of its heir %q", back.Spec.ClusterIP, ip)
	}
}

func testServiceDryRun(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	services := s.Client.CoreV1().Services(s.Namespace(t, "service-dry-run"))
	trial := newService("web", corev1.ServiceTypeNodePort)
	trial.Spec.Ports[0].NodePort = 30002
	for range 2 {
		svc := must[*corev1.Service](t, "trying")(services.Create(ctx, trial,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
		if svc.Spec.ClusterIP == "" {
			t.Error("a trial shows no address")
		}
	}
	must[*corev1.Service](t, "after the trial")(services.Create(ctx, trial, metav1.CreateOptions{}))
}

// A condition that says neither when nor why, as conformance tests send it.
func testServiceStatus(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	services := s.Client.CoreV1().Services(s.Namespace(t, "service-status"))
	must[*corev1.Service](t, "creating")(services.Create(ctx, newService("web", corev1.ServiceTypeLoadBalancer),
		metav1.CreateOptions{}))
	stored := must[*corev1.Service](t, "patching the status")(services.Patch(ctx, "web", types.MergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"StatusUpdate","status":"True"}]}}`), metav1.PatchOptions{}, "status"))
	stored.Status.Conditions = append(stored.Status.Conditions, metav1.Condition{Type: "Second",
		Status: metav1.ConditionFalse})
	stored = must[*corev1.Service](t, "updating the status")(services.UpdateStatus(ctx, stored, metav1.UpdateOptions{}))
	if len(stored.Status.Conditions) != 2 || !stored.Status.Conditions[0].LastTransitionTime.IsZero() {
		t.Errorf("got the conditions %+v", stored.Status.Conditions)
	}
}
