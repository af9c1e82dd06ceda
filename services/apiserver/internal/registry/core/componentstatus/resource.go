// Package componentstatus is the resource ComponentStatus of the core group: whether the store and the daemons are
// well. The API is deprecated and has no other use than to be looked at; nothing of it is stored.
package componentstatus

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/resource"
)

// Leases reads the Leases of a namespace.
type Leases interface {
	Leases(ctx context.Context, namespace string) ([]coordinationv1.Lease, error)
}

// Entry serves what the Leases and the store tell; store is why it does not answer.
func Entry(leases Leases, store func() error) rest.Entry {
	r := reader{leases, store}
	return rest.Computed[*corev1.ComponentStatus]{
		Name: "componentstatuses", Singular: "componentstatus", ShortNames: []string{"cs"}, ClusterScoped: true,
		New:     func() *corev1.ComponentStatus { return &corev1.ComponentStatus{} },
		NewList: func() runtime.Object { return &corev1.ComponentStatusList{} },
		Get:     r.get, List: r.list, Columns: columns,
	}
}

type reader struct {
	leases Leases
	store  func() error
}

func (r reader) all(ctx context.Context) ([]corev1.ComponentStatus, error) {
	leases, err := r.leases.Leases(ctx, metav1.NamespaceSystem)
	if err != nil {
		return nil, err
	}
	return Decide(Input{Now: time.Now(), Store: r.store(), Leases: leases}), nil
}

func (r reader) get(ctx context.Context, _, name string) (*corev1.ComponentStatus, error) {
	all, err := r.all(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
	}
	return nil, apierrors.NewNotFound(corev1.Resource("componentstatuses"), name)
}

func (r reader) list(ctx context.Context, _ string, selected rest.Selection) (runtime.Object, error) {
	all, err := r.all(ctx)
	if err != nil {
		return nil, err
	}
	list := &corev1.ComponentStatusList{Items: []corev1.ComponentStatus{}}
	for i := range all {
		if selected.Matches(&all[i]) {
			list.Items = append(list.Items, all[i])
		}
	}
	return list, nil
}

var columns = resource.NewColumns(
	resource.NameColumn[*corev1.ComponentStatus](),
	resource.Column("Status", "string", "Status of the component conditions", statusCell),
	resource.Column("Message", "string", "Message of the component conditions",
		func(c *corev1.ComponentStatus) any { return healthy(c).Message }),
	resource.Column("Error", "string", "Error of the component conditions",
		func(c *corev1.ComponentStatus) any { return healthy(c).Error }),
)

func statusCell(c *corev1.ComponentStatus) any {
	switch healthy(c).Status {
	case corev1.ConditionTrue:
		return "Healthy"
	case "":
		return "Unknown"
	}
	return "Unhealthy"
}

// healthy is the condition for the health of the component, empty if there is none.
func healthy(c *corev1.ComponentStatus) corev1.ComponentCondition {
	for _, condition := range c.Conditions {
		if condition.Type == corev1.ComponentHealthy {
			return condition
		}
	}
	return corev1.ComponentCondition{}
}
