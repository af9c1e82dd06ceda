package servertest_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// TestAddressesOfAnEarlierVersion: Services from before there were IPAddresses keep their cluster IPs: the first write
// after the start gives each its IPAddress before it takes anything.
func TestAddressesOfAnEarlierVersion(t *testing.T) {
	ctx, external := t.Context(), servertest.SharedStore(t)
	service := func(name, ip string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
			Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	before := servertest.Start(t, external)
	if _, err := before.Client.CoreV1().Services("default").Create(ctx, service("web", "10.96.0.9"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	addresses := before.Client.NetworkingV1().IPAddresses()
	if err := addresses.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	after := servertest.Start(t, external)
	_, err := after.Client.CoreV1().Services("default").Create(ctx, service("thief", "10.96.0.9"),
		metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "provided IP is already allocated") {
		t.Errorf("somebody else asks for the address: %v", err)
	}
	for _, name := range []string{"10.96.0.1", "10.96.0.9"} {
		if _, err := after.Client.NetworkingV1().IPAddresses().Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Errorf("after the first write: %v", err)
		}
	}
}

// TestALostAddressIsTold: whoever repairs what differs between Services and addresses says so by an Event.
func TestALostAddressIsTold(t *testing.T) {
	ctx, external := t.Context(), servertest.SharedStore(t)
	before := servertest.Start(t, external)
	service := func(name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	lost, err := before.Client.CoreV1().Services("default").Create(ctx, service("lost"), metav1.CreateOptions{})
	if err == nil {
		err = before.Client.NetworkingV1().IPAddresses().Delete(ctx, lost.Spec.ClusterIP, metav1.DeleteOptions{})
	}
	after := servertest.Start(t, external)
	if err == nil { // the first write looks at all Services
		_, err = after.Client.CoreV1().Services("default").Create(ctx, service("other"), metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "an Event", func(ctx context.Context) string {
		events, err := after.Client.CoreV1().Events("default").List(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.name=lost,reason=ClusterIPNotAllocated"})
		if err != nil || len(events.Items) != 1 {
			return fmt.Sprintf("%d Events, %v", len(events.Items), err)
		}
		return ""
	})
}

// TestTwoServersShareTheAddresses: two apiservers on one store give out all addresses of a small range at once, none
// of them twice and none for nothing, also where both are asked for a Service of one name; and so it is with the ports.
func TestTwoServersShareTheAddresses(t *testing.T) {
	const all = 30 - 1 // those of a /27, without the one of the API
	small, external := func(c *inproc.Config) { c.ServiceClusterIPRange = "10.96.0.0/27" }, servertest.SharedStore(t)
	servers := []*servertest.Server{servertest.Start(t, external, small), servertest.Start(t, external, small)}
	namespace := servers[0].Namespace(t, "two-servers")
	// each calls for each of some names by both servers at the same time.
	each := func(count int, call func(services typedcorev1.ServiceInterface, name string)) {
		var calls sync.WaitGroup
		for i := range count {
			for _, s := range servers {
				calls.Go(func() { call(s.Client.CoreV1().Services(namespace), fmt.Sprintf("web-%d", i)) })
			}
		}
		calls.Wait()
	}
	made := atomic.Int32{}
	create := func(services typedcorev1.ServiceInterface, name string) {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}}}
		_, err := services.Create(t.Context(), service, metav1.CreateOptions{})
		switch {
		case err == nil:
			made.Add(1)
		case !apierrors.IsAlreadyExists(err) && !strings.Contains(err.Error(), "range is full"):
			t.Errorf("creating %s: %v", name, err)
		}
	}
	for _, s := range servers {
		made.Store(0)
		each(all, create)
		// A Service whose name is taken has an address for a moment, which another one may lack then.
		servertest.Eventually(t, "Services with all addresses", func(context.Context) string {
			have := made.Load()
			if have < all {
				create(s.Client.CoreV1().Services(namespace), fmt.Sprintf("web-%d", all+have))
				return fmt.Sprintf("%d of %d", have, all)
			}
			return ""
		})
		expectOwnAddresses(t, s, namespace, all)
		each(2*all, func(services typedcorev1.ServiceInterface, name string) {
			err := services.Delete(t.Context(), name, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("deleting %s: %v", name, err)
			}
		})
		expectOwnAddresses(t, s, namespace, 0)
	}
}

// expectOwnAddresses wants a number of Services, each with an IPAddress and a node port that are its alone.
func expectOwnAddresses(t *testing.T, s *servertest.Server, namespace string, count int) {
	t.Helper()
	services, err := s.Client.CoreV1().Services(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := s.Client.NetworkingV1().IPAddresses().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owners, got, ports := map[string]string{}, map[string]string{}, map[int32]bool{}
	for _, a := range addresses.Items {
		if ref := a.Spec.ParentRef; ref.Namespace == namespace {
			owners[a.Name] = ref.Name
		}
	}
	for _, service := range services.Items {
		got[service.Spec.ClusterIP], ports[service.Spec.Ports[0].NodePort] = service.Name, true
	}
	if len(services.Items) != count || len(ports) != count || !maps.Equal(got, owners) {
		t.Errorf("%d Services, want %d; they have the addresses %v and %d ports, and the IPAddresses are of %v",
			len(services.Items), count, got, len(ports), owners)
	}
}
