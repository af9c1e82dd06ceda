package priorityclass

import (
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

var help = schedulingv1.PriorityClass{}.SwaggerDoc()

// columns are what kubectl get priorityclasses prints.
var columns = rest.Columns[*schedulingv1.PriorityClass]{
	Definitions: []metav1.TableColumnDefinition{
		rest.NameColumn(),
		rest.Column("Value", "integer", help["value"]),
		rest.Column("Global-Default", "boolean", help["globalDefault"]),
		rest.AgeColumn(),
		rest.Column("PreemptionPolicy", "string", help["preemptionPolicy"]),
	},
	Row: func(pc *schedulingv1.PriorityClass, now time.Time) []any {
		return []any{pc.Name, int64(pc.Value), pc.GlobalDefault, rest.Age(pc.CreationTimestamp, now), string(ptr.Deref(pc.PreemptionPolicy, ""))}
	},
}
