package endpoints

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/apiserver/internal/registry/table"
)

// shownEndpoints is how many addresses a row lists before it only counts them.
const shownEndpoints = 3

// summary lists the first ready addresses and counts the rest.
func summary(subsets []corev1.EndpointSubset) string {
	return table.First(shownEndpoints, addresses(subsets), table.None)
}

func addresses(subsets []corev1.EndpointSubset) []string {
	var all []string
	for _, subset := range subsets {
		if len(subset.Ports) == 0 {
			for _, address := range subset.Addresses {
				all = append(all, address.IP)
			}
		}
		for _, port := range subset.Ports {
			for _, address := range subset.Addresses {
				all = append(all, hostPort(address.IP, port.Port))
			}
		}
	}
	return all
}

// hostPort joins an address and a port; an address of IPv6 gets brackets.
func hostPort(ip string, port int32) string {
	if strings.Contains(ip, ":") {
		return fmt.Sprintf("[%s]:%d", ip, port)
	}
	return fmt.Sprintf("%s:%d", ip, port)
}
