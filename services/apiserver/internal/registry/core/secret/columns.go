package secret

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

var help = corev1.Secret{}.SwaggerDoc()

// columns are what kubectl get secrets prints; never a value.
var columns = rest.Columns[*corev1.Secret]{
	Definitions: []metav1.TableColumnDefinition{
		rest.NameColumn(),
		rest.Column("Type", "string", help["type"]),
		rest.Column("Data", "string", help["data"]),
		rest.AgeColumn(),
	},
	Row: func(s *corev1.Secret, now time.Time) []any {
		return []any{s.Name, string(s.Type), int64(len(s.Data)), rest.Age(s.CreationTimestamp, now)}
	},
}
