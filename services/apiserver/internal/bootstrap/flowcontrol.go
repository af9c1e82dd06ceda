package bootstrap

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/lanes"
)

// configProducer is the field manager of what flow control is given.
const configProducer = "api-priority-and-fairness-config-producer-v1"

// ensureFlowControl makes priority levels and flow schemas what they are to be. Levels come first: no schema leads to
// one that is missing.
func (b *Bootstrapper) ensureFlowControl(ctx context.Context) error {
	client := b.Client.FlowcontrolV1()
	levels, err := client.PriorityLevelConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the PriorityLevelConfigurations: %w", err)
	}
	schemas, err := client.FlowSchemas().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the FlowSchemas: %w", err)
	}
	ofLevels := priorityLevels().decide(pointers(levels.Items))
	ofSchemas := flowSchemas().decide(pointers(schemas.Items))
	return errors.Join(
		ofLevels.write(ctx, "PriorityLevelConfiguration", client.PriorityLevelConfigurations()),
		ofSchemas.write(ctx, "FlowSchema", client.FlowSchemas()),
		ofSchemas.delete(ctx, "FlowSchema", client.FlowSchemas()),
		ofLevels.delete(ctx, "PriorityLevelConfiguration", client.PriorityLevelConfigurations()),
	)
}

func pointers[V any](values []V) []*V {
	out := make([]*V, len(values))
	for i := range values {
		out[i] = &values[i]
	}
	return out
}

// written is where objects of a kind are written.
type written[O metav1.Object] interface {
	Create(ctx context.Context, object O, options metav1.CreateOptions) (O, error)
	Update(ctx context.Context, object O, options metav1.UpdateOptions) (O, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

func (u upkeep[O]) write(ctx context.Context, kind string, client written[O]) error {
	return errors.Join(
		lanes.Each(writers, u.create, func(o O) error {
			_, err := client.Create(ctx, o, metav1.CreateOptions{FieldManager: configProducer})
			return describe(kind, o.GetName(), err)
		}),
		lanes.Each(writers, u.update, func(o O) error {
			// A conflict means that another client's write came first: the next look sees its result.
			_, err := client.Update(ctx, o, metav1.UpdateOptions{FieldManager: configProducer})
			if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return fmt.Errorf("updating the %s %s: %w", kind, o.GetName(), err)
			}
			return nil
		}),
	)
}

func (u upkeep[O]) delete(ctx context.Context, kind string, client written[O]) error {
	return lanes.Each(writers, u.remove, func(name string) error {
		if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting the %s %s: %w", kind, name, err)
		}
		return nil
	})
}
