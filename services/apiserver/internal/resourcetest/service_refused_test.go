package resourcetest

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/servertest"
)

// blamed are the fields that a refusal names, in order.
func blamed(t *testing.T, err error) []string {
	t.Helper()
	if !apierrors.IsInvalid(err) {
		t.Errorf("got %v, want a 422", err)
		return nil
	}
	var fields []string
	for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	slices.Sort(fields)
	return slices.Compact(fields) // the library checks the metadata of an update twice
}

// A Service that is wrong in several ways is told of all of them at once, be they rules or what cannot be had, and is
// given nothing meanwhile.
func testServiceRefusals(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	services := s.Client.CoreV1().Services(s.Namespace(t, "service-refusals"))
	other := must[*corev1.Service](t, "creating")(services.Create(ctx, newService("other", corev1.ServiceTypeNodePort),
		metav1.CreateOptions{}))
	stored := must[*corev1.Service](t, "creating")(services.Create(ctx, newService("web", corev1.ServiceTypeNodePort),
		metav1.CreateOptions{}))
	watching, err := s.Client.NetworkingV1().IPAddresses().Watch(ctx, metav1.ListOptions{
		ResourceVersion: stored.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	for _, row := range []struct {
		name string
		edit func(*corev1.Service)
		want []string
	}{
		{"a port and a node port that are none", func(s *corev1.Service) {
			s.Spec.Ports[0].Port, s.Spec.Ports[0].NodePort = 99999, 70000
		}, []string{"spec.ports[0].nodePort", "spec.ports[0].port", "spec.ports[0].targetPort"}},
		{"an address and a node port of somebody else, and an affinity", func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.Ports[0].NodePort = other.Spec.ClusterIP, other.Spec.Ports[0].NodePort
			s.Spec.SessionAffinity = "Sometimes"
		}, []string{"spec.clusterIPs[0]", "spec.ports[0].nodePort", "spec.sessionAffinity"}},
		{"a family that the cluster has not, and a port", func(s *corev1.Service) {
			s.Spec.IPFamilies, s.Spec.Ports[0].Port = []corev1.IPFamily{corev1.IPv6Protocol}, 0
		}, []string{"spec.ipFamilies[0]", "spec.ports[0].port", "spec.ports[0].targetPort"}},
		{"an address of a family that the cluster has not, and a node port", func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.Ports[0].NodePort = "fd00::1", 29999
		}, []string{"spec.clusterIPs[0]", "spec.ports[0].nodePort"}},
		{"the address of the API, and annotations of more than 256 KiB", func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Annotations = "10.96.0.1", map[string]string{"a": strings.Repeat("x", 256<<10)}
		}, []string{"metadata.annotations", "spec.clusterIPs[0]"}},
		{"addresses that no packet can be sent to", func(s *corev1.Service) {
			s.Spec.ExternalIPs = []string{"127.0.0.1", "192.0.2.1", "::1", "169.254.169.254", "0.0.0.0", "224.0.0.1",
				"x"}
		}, []string{"spec.externalIPs[0]", "spec.externalIPs[2]", "spec.externalIPs[3]", "spec.externalIPs[4]",
			"spec.externalIPs[5]", "spec.externalIPs[6]"}},
		{"a name in capitals, and a port", func(s *corev1.Service) {
			s.Name, s.Spec.Ports[0].Port = "Web", 0
		}, []string{"metadata.name", "spec.ports[0].port", "spec.ports[0].targetPort"}},
		{"a label, an address outside of the range, and a port", func(s *corev1.Service) {
			s.Labels = map[string]string{"a b": ""}
			s.Spec.ClusterIP, s.Spec.Ports[0].Port = "192.0.2.1", 65536
		}, []string{"metadata.labels", "spec.clusterIPs[0]", "spec.ports[0].port", "spec.ports[0].targetPort"}},
	} {
		refused := newService("refused", corev1.ServiceTypeNodePort)
		row.edit(refused)
		if _, err := services.Create(ctx, refused, metav1.CreateOptions{}); !slices.Equal(blamed(t, err), row.want) {
			t.Errorf("%s: %v, want it to blame %v", row.name, err, row.want)
		}
	}
	changed := stored.DeepCopy()
	changed.Labels = map[string]string{"a b": ""}
	changed.Spec.Ports[0].Port, changed.Spec.Ports[0].NodePort = 0, other.Spec.Ports[0].NodePort
	_, err = services.Update(ctx, changed, metav1.UpdateOptions{})
	if got, want := blamed(t, err), []string{"metadata.labels", "spec.ports[0].nodePort",
		"spec.ports[0].port"}; !slices.Equal(got, want) {
		t.Errorf("an update: %v, want it to blame %v", err, want)
	}
	last := must[*corev1.Service](t, "creating")(services.Create(ctx, newService("last", corev1.ServiceTypeClusterIP),
		metav1.CreateOptions{}))
	for event := range watching.ResultChan() {
		if address := event.Object.(*networkingv1.IPAddress); address.Spec.ParentRef.Name == "refused" {
			t.Errorf("%s %s of a Service that was refused", event.Type, address.Name)
		} else if address.Name == last.Spec.ClusterIP {
			break
		}
	}
}
