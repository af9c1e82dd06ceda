package service

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

var help = corev1.ServiceSpec{}.SwaggerDoc()

// columns are what kubectl get services prints.
var columns = resource.NewColumns(
	resource.NameColumn[*corev1.Service](),
	resource.Column("Type", "string", help["type"], func(s *corev1.Service) any { return string(s.Spec.Type) }),
	resource.Column("Cluster-IP", "string", help["clusterIP"], func(s *corev1.Service) any { return clusterIP(s) }),
	resource.Column("External-IP", "string", help["externalIPs"], func(s *corev1.Service) any { return externalIP(s) }),
	resource.Column("Port(s)", "string", help["ports"], func(s *corev1.Service) any { return portList(s.Spec.Ports) }),
	resource.AgeColumn[*corev1.Service](),
	resource.Column("Selector", "string", help["selector"],
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
