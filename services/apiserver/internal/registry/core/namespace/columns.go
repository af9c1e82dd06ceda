package namespace

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

// columns are what kubectl get namespaces prints.
var columns = rest.Columns[*corev1.Namespace]{
	Definitions: []metav1.TableColumnDefinition{
		rest.NameColumn(),
		rest.Column("Status", "string", "The status of the namespace"),
		rest.AgeColumn(),
	},
	Row: func(ns *corev1.Namespace, now time.Time) []any {
		return []any{ns.Name, string(ns.Status.Phase), rest.Age(ns.CreationTimestamp, now)}
	},
}
