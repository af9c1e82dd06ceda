package aggregation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
)

// defaultPort is that of a reference which names none.
const defaultPort = 443

// decideTargets are the addresses, HOST:PORT, of which any can answer. service is nil where there is none. Endpoints
// are asked for directly: the apiserver may be on a machine that has no way to cluster IPs.
func decideTargets(ref *apiregistration.ServiceReference, service *corev1.Service, parts []discoveryv1.EndpointSlice) (
	[]string, Verdict) {
	port := ptr.Deref(ref.Port, defaultPort)
	if service == nil {
		return nil, unavailable("ServiceNotFound", fmt.Sprintf("there is no service %s/%s", ref.Namespace, ref.Name))
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return []string{hostPort(service.Spec.ExternalName, port)}, Verdict{}
	}
	at := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port })
	if at < 0 {
		return nil, unavailable("ServicePortError", fmt.Sprintf("the service %s/%s has no port %d", ref.Namespace,
			ref.Name, port))
	}
	if len(parts) == 0 {
		return nil, unavailable("EndpointsNotFound", fmt.Sprintf("there are no endpoints for the service %s/%s",
			ref.Namespace, ref.Name))
	}
	targets := ready(parts, service.Spec.Ports[at].Name)
	if len(targets) == 0 {
		return nil, unavailable("MissingEndpoints", fmt.Sprintf("no endpoint of the service %s/%s is ready at port %d",
			ref.Namespace, ref.Name, port))
	}
	return targets, Verdict{}
}

// ready are the endpoints that take requests at the named port.
func ready(parts []discoveryv1.EndpointSlice, port string) []string {
	var found []string
	for i := range parts {
		slice := &parts[i]
		at := slices.IndexFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool {
			return ptr.Deref(p.Name, "") == port && p.Port != nil
		})
		if at < 0 || slice.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) && len(endpoint.Addresses) > 0 {
				found = append(found, hostPort(endpoint.Addresses[0], *slice.Ports[at].Port))
			}
		}
	}
	return found
}

func hostPort(host string, port int32) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(port))
}
