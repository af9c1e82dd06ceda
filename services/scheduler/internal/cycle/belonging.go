package cycle

import (
	"slices"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/services/scheduler/internal/groups"
)

// SetGroup notes a Service or a controller that is new or changed.
func (c *Cycle) SetGroup(g groups.Group) { c.groups.Set(g) }

// RemoveGroup notes that a Service or a controller is gone.
func (c *Cycle) RemoveGroup(name groups.Name) { c.groups.Remove(name) }

// SetPodGroup notes a PodGroup that is new or changed. The object must not change afterwards.
func (c *Cycle) SetPodGroup(o *schedulingv1beta1.PodGroup, now time.Time) { c.gangs.set(o, now) }

// RemovePodGroup notes that a PodGroup is gone. Pods of it that have no node wait for another.
func (c *Cycle) RemovePodGroup(o *schedulingv1beta1.PodGroup) { c.gangs.remove(o) }

// SetNamespace notes the labels of a namespace, none where it is gone.
func (c *Cycle) SetNamespace(name string, of labels.Set) {
	if c.state.SetNamespace(name, of) {
		c.relabelled[name] = true
	}
}

// readGroups looks again at the Pods whose Services or controllers have changed, and at those in namespaces that have
// changed so that other terms select their Pods.
func (c *Cycle) readGroups(now time.Time) {
	belongs := c.groups.TakeChanged()
	if belongs == nil && len(c.relabelled) == 0 {
		return
	}
	var found []*pod
	for _, p := range c.pods {
		if !p.placed() && (c.relabelled[p.object.Namespace] || belongs != nil && belongs(p.object)) {
			found = append(found, p)
		}
	}
	clear(c.relabelled)
	slices.SortFunc(found, older)
	for _, p := range found {
		c.enqueue(p, p.object, now)
	}
}
