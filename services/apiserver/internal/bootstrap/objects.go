package bootstrap

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// serviceName is the Service by which Pods reach the apiserver.
	serviceName = "kubernetes"
	servicePort = 443
	portName    = "https"
)

// namespaces always exist.
var namespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic,
	corev1.NamespaceNodeLease}

// service is the Service of the apiserver.
func service(ip netip.Addr, targetPort int) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name:      serviceName,
			Namespace: metav1.NamespaceDefault,
			Labels:    map[string]string{"component": "apiserver", "provider": "kubernetes"},
		},
		Spec: corev1.ServiceSpec{
			Type:            corev1.ServiceTypeClusterIP,
			ClusterIP:       ip.String(),
			SessionAffinity: corev1.ServiceAffinityNone,
			// No selector: the apiservers are no Pods, they enter themselves.
			Ports: []corev1.ServicePort{{Name: portName, Port: servicePort, Protocol: corev1.ProtocolTCP,
				TargetPort: intstr.FromInt(targetPort)}},
		},
	}
}
