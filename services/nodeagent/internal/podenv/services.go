package podenv

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

const masterName, masterNamespace = "kubernetes", corev1.NamespaceDefault

// serviceVariables returns the variables with the addresses of Services. The API server's own Service is always
// included; those of the Pod's namespace unless enableServiceLinks is false, and they win over it by name.
func serviceVariables(pod *corev1.Pod, services []*corev1.Service) map[string]string {
	links := ptr.Deref(pod.Spec.EnableServiceLinks, true)
	chosen := map[string]*corev1.Service{}
	for _, service := range services {
		if service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone ||
			len(service.Spec.Ports) == 0 {
			continue
		}
		switch {
		case service.Namespace == pod.Namespace && links:
			chosen[service.Name] = service
		case service.Namespace == masterNamespace && service.Name == masterName && chosen[masterName] == nil:
			chosen[masterName] = service
		}
	}
	vars := map[string]string{}
	for _, service := range chosen {
		maps.Copy(vars, variablesOf(service))
	}
	return vars
}

// variablesOf returns the variables of one Service: host and ports, and the older form with one URL per port.
func variablesOf(service *corev1.Service) map[string]string {
	ip, ports := service.Spec.ClusterIP, service.Spec.Ports
	prefix := variableName(service.Name)
	vars := map[string]string{
		prefix + "_SERVICE_HOST": ip,
		prefix + "_SERVICE_PORT": strconv.Itoa(int(ports[0].Port)),
	}
	for i, port := range ports {
		number, protocol := strconv.Itoa(int(port.Port)), string(port.Protocol)
		if protocol == "" {
			protocol = string(corev1.ProtocolTCP)
		}
		if port.Name != "" {
			vars[prefix+"_SERVICE_PORT_"+variableName(port.Name)] = number
		}
		url := strings.ToLower(protocol) + "://" + hostPort(ip, number)
		if i == 0 {
			vars[prefix+"_PORT"] = url
		}
		one := prefix + "_PORT_" + number + "_" + strings.ToUpper(protocol)
		vars[one] = url
		vars[one+"_PROTO"] = strings.ToLower(protocol)
		vars[one+"_PORT"] = number
		vars[one+"_ADDR"] = ip
	}
	return vars
}

func variableName(name string) string {
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

func hostPort(ip, port string) string {
	if strings.Contains(ip, ":") {
		return "[" + ip + "]:" + port
	}
	return ip + ":" + port
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
