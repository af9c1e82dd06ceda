package serviceaccount

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

// columns are what kubectl get serviceaccounts prints.
var columns = rest.Columns[*corev1.ServiceAccount]{
	Definitions: []metav1.TableColumnDefinition{
		rest.NameColumn(),
		rest.Column("Secrets", "string", corev1.ServiceAccount{}.SwaggerDoc()["secrets"]),
		rest.AgeColumn(),
	},
	Row: func(sa *corev1.ServiceAccount, now time.Time) []any {
		return []any{sa.Name, int64(len(sa.Secrets)), rest.Age(sa.CreationTimestamp, now)}
	},
}
