package service

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/registry/table"
)

var help = corev1.ServiceSpec{}.SwaggerDoc()

// columns are what kubectl get services prints.
var columns = rest.NewColumns(
	rest.NameColumn[*corev1.Service](),
	rest.Column("Type", "string", help["type"], func(s *corev1.Service) any { return string(s.Spec.Type) }),
	rest.Column("Cluster-IP", "string", help["clusterIP"], func(s *corev1.Service) any { return clusterIP(s) }),
	rest.Column("External-IP", "string", help["externalIPs"], func(s *corev1.Service) any { return externalIP(s) }),
	rest.Column("Port(s)", "string", help["ports"], func(s *corev1.Service) any { return portList(s.Spec.Ports) }),
	rest.AgeColumn[*corev1.Service](),
	rest.Column("Selector", "string", help["selector"],
		func(s *corev1.Service) any { return table.Labels(s.Spec.Selector) }).Wide(),
)

func clusterIP(s *corev1.Service) string {
	if len(s.Spec.ClusterIPs) == 0 {
		return table.None
	}
	return s.Spec.ClusterIPs[0]
}

func externalIP(s *corev1.Service) string {
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return table.Joined(s.Spec.ExternalIPs, ",")
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		return loadBalancerIP(s)
	}
	return table.Unknown
}

func loadBalancerIP(s *corev1.Service) string {
	var shown []string
	for _, point := range s.Status.LoadBalancer.Ingress {
		switch {
		case point.IP != "":
			shown = append(shown, point.IP)
		case point.Hostname != "":
			shown = append(shown, point.Hostname)
		}
	}
	shown = append(shown, s.Spec.ExternalIPs...)
	if len(shown) == 0 {
		return "<pending>"
	}
	return strings.Join(shown, ",")
}

func portList(ports []corev1.ServicePort) string {
	items := make([]string, 0, len(ports))
	for _, port := range ports {
		item := fmt.Sprintf("%d/%s", port.Port, port.Protocol)
		if port.NodePort > 0 {
			item = fmt.Sprintf("%d:%d/%s", port.Port, port.NodePort, port.Protocol)
		}
		items = append(items, item)
	}
	return table.Joined(items, ",")
}
