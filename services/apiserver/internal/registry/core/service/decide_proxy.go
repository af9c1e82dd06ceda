package service

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// backend is an endpoint that a request may be handed on to, if the Pod really has the address.
type backend struct {
	pod, ip string
	port    int32
}

// proxiedPort is the name of the port that is asked for, by number or by name. A Service with one port needs no word.
func proxiedPort(s *corev1.Service, asked string) (string, error) {
	if asked == "" && len(s.Spec.Ports) == 1 {
		return s.Spec.Ports[0].Name, nil
	}
	number, err := strconv.ParseInt(asked, 10, 32)
	for _, port := range s.Spec.Ports {
		if port.Name == asked || err == nil && int64(port.Port) == number {
			return port.Name, nil
		}
	}
	if asked == "" {
		return "", fmt.Errorf("service %q has several ports: say which, as in %s:PORT", s.Name, s.Name)
	}
	return "", fmt.Errorf("no service port %q found for service %q", asked, s.Name)
}

// backends are the endpoints behind the port that are ready and say which Pod of the Service's namespace they are.
// Others could be any address: who may write endpoints must not reach by them what the apiserver reaches.
func backends(namespace, port string, parts []discoveryv1.EndpointSlice) []backend {
	var found []backend
	for i := range parts {
		slice := &parts[i]
		at := slices.IndexFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool {
			return ptr.Deref(p.Name, "") == port && p.Port != nil
		})
		if at < 0 || slice.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			target := endpoint.TargetRef
			if !ptr.Deref(endpoint.Conditions.Ready, true) || len(endpoint.Addresses) == 0 || target == nil ||
				target.Kind != "Pod" || target.Namespace != namespace {
				continue
			}
			found = append(found, backend{pod: target.Name, ip: endpoint.Addresses[0], port: *slice.Ports[at].Port})
		}
	}
	return found
}

// isAt reports whether the Pod has the address.
func isAt(p *corev1.Pod, ip string) bool {
	return p.Status.PodIP == ip || slices.ContainsFunc(p.Status.PodIPs, func(has corev1.PodIP) bool {
		return has.IP == ip
	})
}
