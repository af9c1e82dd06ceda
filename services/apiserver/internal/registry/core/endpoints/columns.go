package endpoints

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/registry/table"
)

// shownEndpoints is how many addresses a row lists before it only counts them.
const shownEndpoints = 3

// columns are what kubectl get endpoints prints.
var columns = rest.Columns[*corev1.Endpoints]{
	Definitions: []metav1.TableColumnDefinition{
		rest.NameColumn(),
		rest.Column("Endpoints", "string", corev1.Endpoints{}.SwaggerDoc()["subsets"]),
		rest.AgeColumn(),
	},
	Row: func(e *corev1.Endpoints, now time.Time) []any {
		return []any{e.Name, summary(e.Subsets), rest.Age(e.CreationTimestamp, now)}
	},
}

// summary lists the first ready addresses and counts the rest.
func summary(subsets []corev1.EndpointSubset) string {
	all := addresses(subsets)
	if len(all) == 0 {
		return table.None
	}
	if len(all) <= shownEndpoints {
		return strings.Join(all, ",")
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(all[:shownEndpoints], ","), len(all)-shownEndpoints)
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
				all = append(all, net.JoinHostPort(address.IP, strconv.Itoa(int(port.Port))))
			}
		}
	}
	return all
}
