package resourcetest

import (
	"context"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// An Ingress that names no class gets the default one, once there is one.
func testIngressClasses(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ingresses := s.Client.NetworkingV1().Ingresses(s.Namespace(t, "ingresses"))
	create := func(name string) *networkingv1.Ingress {
		return must[*networkingv1.Ingress](t, "creating")(ingresses.Create(ctx, &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "web",
					Port: networkingv1.ServiceBackendPort{Number: 80}}}},
		}, metav1.CreateOptions{}))
	}
	if got := create("before").Spec.IngressClassName; got != nil {
		t.Errorf("without a default class: %s", *got)
	}
	class := &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: "public",
			Annotations: map[string]string{"ingressclass.kubernetes.io/is-default-class": "true"}},
		Spec: networkingv1.IngressClassSpec{Controller: "example.com/ingress"},
	}
	must[*networkingv1.IngressClass](t, "creating the class")(s.Client.NetworkingV1().IngressClasses().Create(ctx,
		class,
		metav1.CreateOptions{}))
	servertest.Eventually(t, "the default class", func(ctx context.Context) string {
		i := create("after")
		if ptr.Deref(i.Spec.IngressClassName, "") == "public" {
			return ""
		}
		if err := ingresses.Delete(ctx, "after", metav1.DeleteOptions{}); err != nil {
			return err.Error()
		}
		return "not set"
	})
}
