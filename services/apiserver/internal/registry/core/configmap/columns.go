package configmap

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

var columns = rest.Columns[*corev1.ConfigMap]{
	Definitions: []metav1.TableColumnDefinition{
		rest.NameColumn(),
		rest.Column("Data", "string", corev1.ConfigMap{}.SwaggerDoc()["data"]),
		rest.AgeColumn(),
	},
	Row: func(c *corev1.ConfigMap, now time.Time) []any {
		return []any{c.Name, int64(len(c.Data) + len(c.BinaryData)), rest.Age(c.CreationTimestamp, now)}
	},
}
