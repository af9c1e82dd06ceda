package resourcetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// addressesOf are the IPAddresses that belong to Services of the namespace, each with the name of its Service.
func addressesOf(t *testing.T, s *servertest.Server, namespace string) map[string]string {
	t.Helper()
	list := must[*networkingv1.IPAddressList](t, "listing the addresses")(s.Client.NetworkingV1().IPAddresses().List(
		t.Context(), metav1.ListOptions{}))
	found := map[string]string{}
	for _, address := range list.Items {
		if ref := address.Spec.ParentRef; ref.Resource == "services" && ref.Namespace == namespace {
			found[address.Name] = ref.Name
		}
	}
	return found
}

// Each cluster IP has its IPAddress as long as its Service has it, also where 100 Services are made at a time, and no
// failure and no dry run leaves one behind.
func testServiceAddresses(t *testing.T, s *servertest.Server) {
	ctx, namespace := t.Context(), s.Namespace(t, "service-addresses")
	services := s.Client.CoreV1().Services(namespace)
	const many = 100
	created := make(chan *corev1.Service, many)
	for range many {
		go func() {
			service := newService("", corev1.ServiceTypeClusterIP)
			service.GenerateName = "web-"
			service, err := services.Create(ctx, service, metav1.CreateOptions{})
			if err != nil {
				t.Errorf("creating: %v", err)
			}
			created <- service
		}()
	}
	want := map[string]string{}
	for range many {
		if service := <-created; !t.Failed() {
			want[service.Spec.ClusterIP] = service.Name
		}
	}
	if got := addressesOf(t, s, namespace); len(got) != many || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%d Services have %d addresses, of which %d have an IPAddress", many, len(want), len(got))
	}
	for _, name := range want {
		if err := services.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("deleting %s: %v", name, err)
		}
	}
	invalid := newService("web", corev1.ServiceTypeClusterIP)
	invalid.Spec.SessionAffinity = "Sometimes"
	_, err := services.Create(ctx, invalid, metav1.CreateOptions{})
	refusedAt(t, err, "spec.sessionAffinity")
	must[*corev1.Service](t, "trying")(services.Create(ctx, newService("web", corev1.ServiceTypeClusterIP),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	if got := addressesOf(t, s, namespace); len(got) > 0 {
		t.Errorf("addresses of nobody: %v", got)
	}
	// One that is applied, and whose manifest leaves it to the path in which namespace it is.
	applied := must[*corev1.Service](t, "applying")(services.Patch(ctx, "applied", types.ApplyPatchType, []byte(
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"applied"},"spec":{"ports":[{"port":80}]}}`),
		metav1.PatchOptions{FieldManager: "test"}))
	if got := addressesOf(t, s, namespace); len(got) != 1 || got[applied.Spec.ClusterIP] != "applied" {
		t.Errorf("applied at %s, with the addresses %v", applied.Spec.ClusterIP, got)
	}
	// An address that another client has requested is not given out.
	own := &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: "10.96.0.77"}, Spec: networkingv1.IPAddressSpec{
		ParentRef: &networkingv1.ParentReference{Group: "example.com", Resource: "gateways", Name: "edge"}}}
	must[*networkingv1.IPAddress](t, "reserving")(s.Client.NetworkingV1().IPAddresses().Create(ctx, own,
		metav1.CreateOptions{}))
	reserved := newService("web", corev1.ServiceTypeClusterIP)
	reserved.Spec.ClusterIP = own.Name
	_, err = services.Create(ctx, reserved, metav1.CreateOptions{})
	refusedAt(t, err, "spec.clusterIPs[0]")
}

// Another ServiceCIDR gives more room once it is ready, and no more when it is not.
func testServiceRanges(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	services := s.Client.CoreV1().Services(s.Namespace(t, "service-ranges"))
	ranges := s.Client.NetworkingV1().ServiceCIDRs()
	more := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.111.0.0/24"}}}
	more = must[*networkingv1.ServiceCIDR](t, "creating the range")(ranges.Create(ctx, more, metav1.CreateOptions{}))
	outside := newService("outside", corev1.ServiceTypeClusterIP)
	outside.Spec.ClusterIP = "10.111.0.5"
	_, err := services.Create(ctx, outside, metav1.CreateOptions{})
	refusedAt(t, err, "spec.clusterIPs[0]")
	set := func(status metav1.ConditionStatus) {
		more.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: status, Reason: "Test",
			LastTransitionTime: metav1.Now()}}
		more = must[*networkingv1.ServiceCIDR](t, "setting the condition")(ranges.UpdateStatus(ctx, more,
			metav1.UpdateOptions{}))
	}
	set(metav1.ConditionTrue)
	servertest.Eventually(t, "the new room", func(ctx context.Context) string {
		if _, err := services.Create(ctx, outside, metav1.CreateOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	set(metav1.ConditionFalse)
	servertest.Eventually(t, "no room", func(ctx context.Context) string {
		again := newService("again", corev1.ServiceTypeClusterIP)
		again.Spec.ClusterIP = "10.111.0.6"
		_, err := services.Create(ctx, again, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "The range of valid IPs is 10.96.0.0/16") {
			return fmt.Sprint(err)
		}
		return ""
	})
	_, err = s.Client.NetworkingV1().ServiceCIDRs().Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Errorf("the default range: %v", err)
	}
}

// A cluster with two ranges gives Services one address of each family if they ask for it, and takes it back.
func TestDualStack(t *testing.T) {
	s := servertest.Start(t, func(c *inproc.Config) { c.ServiceClusterIPRange = "10.96.0.0/16,fd00:1::/112" })
	ctx, namespace := t.Context(), s.Namespace(t, "dual-stack")
	services := s.Client.CoreV1().Services(namespace)
	service := newService("web", corev1.ServiceTypeClusterIP)
	policy := corev1.IPFamilyPolicyRequireDualStack
	service.Spec.IPFamilyPolicy = &policy
	stored := must[*corev1.Service](t, "creating")(services.Create(ctx, service, metav1.CreateOptions{}))
	if ips := stored.Spec.ClusterIPs; len(ips) != 2 || !strings.HasPrefix(ips[0], "10.96.") ||
		!strings.HasPrefix(ips[1], "fd00:1::") || ips[0] != stored.Spec.ClusterIP {
		t.Fatalf("got %v", ips)
	}
	if got := addressesOf(t, s, namespace); len(got) != 2 {
		t.Errorf("addresses %v", got)
	}
	policy = corev1.IPFamilyPolicySingleStack
	stored.Spec.IPFamilyPolicy = &policy
	first := stored.Spec.ClusterIP
	stored = must[*corev1.Service](t, "asking for one family")(services.Update(ctx, stored, metav1.UpdateOptions{}))
	if got := addressesOf(t, s, namespace); len(got) != 1 || got[first] != "web" || len(stored.Spec.ClusterIPs) != 1 {
		t.Errorf("addresses %v, cluster IPs %v", got, stored.Spec.ClusterIPs)
	}
	policy = corev1.IPFamilyPolicyPreferDualStack
	stored.Spec.IPFamilyPolicy = &policy
	stored = must[*corev1.Service](t, "asking for two")(services.Update(ctx, stored, metav1.UpdateOptions{}))
	if len(stored.Spec.ClusterIPs) != 2 || stored.Spec.ClusterIP != first {
		t.Errorf("cluster IPs %v", stored.Spec.ClusterIPs)
	}
	cidr := must[*networkingv1.ServiceCIDR](t, "reading the range")(s.Client.NetworkingV1().ServiceCIDRs().Get(ctx,
		"kubernetes", metav1.GetOptions{}))
	if len(cidr.Spec.CIDRs) != 2 || len(cidr.Status.Conditions) != 1 || cidr.Status.Conditions[0].Status != "True" {
		t.Errorf("the default range is %v, %v", cidr.Spec, cidr.Status)
	}
	if err := services.Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := addressesOf(t, s, namespace); len(got) > 0 {
		t.Errorf("addresses of a deleted Service: %v", got)
	}
}
