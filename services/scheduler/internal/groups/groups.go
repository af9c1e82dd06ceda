// Package groups says to which Services, ReplicationControllers, ReplicaSets and StatefulSets a Pod belongs.
//
// The package is pure and not safe for concurrent use.
//
//keelson:decision
package groups

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// The kinds of groups.
const (
	Service               = "Service"
	ReplicationController = "ReplicationController"
	ReplicaSet            = "ReplicaSet"
	StatefulSet           = "StatefulSet"
)

// Name names a group.
type Name struct {
	Kind string
	types.NamespacedName
}

// Group is a Service, which has the Pods that it selects, or a controller, which has those that name it as such.
type Group struct {
	Name
	// Labels are those that a Service or a ReplicationController selects by, Selector is that of any other.
	Labels   map[string]string
	Selector labels.Selector
}

// Of returns the object as a group; false for an object of another kind. A selector that cannot be read selects all.
func Of(object any) (Group, bool) {
	switch o := object.(type) {
	case *corev1.Service:
		return Group{Name: name(Service, o), Labels: o.Spec.Selector}, true
	case *corev1.ReplicationController:
		return Group{Name: name(ReplicationController, o), Labels: o.Spec.Selector}, true
	case *appsv1.ReplicaSet:
		return Group{Name: name(ReplicaSet, o), Selector: parsed(o.Spec.Selector)}, true
	case *appsv1.StatefulSet:
		return Group{Name: name(StatefulSet, o), Selector: parsed(o.Spec.Selector)}, true
	}
	return Group{}, false
}

func name(kind string, o metav1.Object) Name {
	return Name{Kind: kind, NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

func parsed(s *metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Everything()
	}
	return selector
}

// ControllerOf returns the reference to the Pod's controller if that is a group; nil when it is none.
func ControllerOf(p *corev1.Pod) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		return nil
	}
	switch {
	case owner.APIVersion == "v1" && owner.Kind == ReplicationController:
	case owner.APIVersion == "apps/v1" && (owner.Kind == ReplicaSet || owner.Kind == StatefulSet):
	default:
		return nil
	}
	return owner
}

// has reports whether the Pod belongs to the group.
func (g *Group) has(p *corev1.Pod) bool {
	if g.Namespace != p.Namespace {
		return false
	}
	if g.Kind == Service {
		return len(g.Labels) > 0 && labels.SelectorFromSet(g.Labels).Matches(labels.Set(p.Labels))
	}
	owner := ControllerOf(p)
	return owner != nil && owner.Kind == g.Kind && owner.Name == g.Name.Name
}

// same reports whether both have the same Pods, selected alike.
func (g *Group) same(other *Group) bool {
	if !labels.Equals(g.Labels, other.Labels) || (g.Selector == nil) != (other.Selector == nil) {
		return false
	}
	return g.Selector == nil || g.Selector.String() == other.Selector.String()
}

// Book is all groups.
type Book struct {
	services    map[string]map[string]*Group // by namespace and name
	controllers map[Name]*Group
	changed     []*Group
}

// New returns an empty Book.
func New() *Book {
	return &Book{services: map[string]map[string]*Group{}, controllers: map[Name]*Group{}}
}

// Set notes a group that is new or changed.
func (b *Book) Set(g Group) {
	before := b.get(g.Name)
	if before != nil && before.same(&g) {
		return
	}
	if before != nil {
		b.changed = append(b.changed, before)
	}
	b.changed = append(b.changed, &g)
	if g.Kind != Service {
		b.controllers[g.Name] = &g
		return
	}
	if b.services[g.Namespace] == nil {
		b.services[g.Namespace] = map[string]*Group{}
	}
	b.services[g.Namespace][g.Name.Name] = &g
}

// Remove notes that a group is gone.
func (b *Book) Remove(name Name) {
	before := b.get(name)
	if before == nil {
		return
	}
	b.changed = append(b.changed, before)
	if name.Kind != Service {
		delete(b.controllers, name)
		return
	}
	if delete(b.services[name.Namespace], name.Name); len(b.services[name.Namespace]) == 0 {
		delete(b.services, name.Namespace)
	}
}

func (b *Book) get(name Name) *Group {
	if name.Kind == Service {
		return b.services[name.Namespace][name.Name]
	}
	return b.controllers[name]
}

// Selector returns what selects the Pods of all groups that the Pod belongs to; nil when it belongs to none, or they
// select by nothing.
func (b *Book) Selector(p *corev1.Pod) labels.Selector {
	var set labels.Set
	for _, g := range b.services[p.Namespace] {
		if g.has(p) {
			set = labels.Merge(set, g.Labels)
		}
	}
	var controller *Group
	if owner := ControllerOf(p); owner != nil {
		controller = b.controllers[Name{owner.Kind, types.NamespacedName{Namespace: p.Namespace, Name: owner.Name}}]
	}
	if controller != nil {
		set = labels.Merge(set, controller.Labels)
	}
	selector := set.AsSelector()
	if controller != nil && controller.Selector != nil {
		requirements, _ := controller.Selector.Requirements()
		selector = selector.Add(requirements...)
	}
	if selector.Empty() {
		return nil
	}
	return selector
}

// TakeChanged returns which of these Pods belong, or belonged, to a group that changed since the last call.
func (b *Book) TakeChanged() func(*corev1.Pod) bool {
	changed := b.changed
	b.changed = nil
	if len(changed) == 0 {
		return nil
	}
	return func(p *corev1.Pod) bool {
		return slices.ContainsFunc(changed, func(g *Group) bool { return g.has(p) })
	}
}
