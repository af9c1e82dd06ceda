package simulate

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// mesh is all that decisions depend on.
type mesh struct {
	nodes      []*corev1.Node
	pods       []*corev1.Pod
	daemonSets []*appsv1.DaemonSet
	priorities []*schedulingv1.PriorityClass
	runtimes   []*nodev1.RuntimeClass
	classes    []*storagev1.StorageClass
	claims     map[types.NamespacedName]*corev1.PersistentVolumeClaim
	others     []runtime.Object // what else the scheduler watches
}

func newMesh(objects []runtime.Object) (*mesh, error) {
	m := &mesh{claims: map[types.NamespacedName]*corev1.PersistentVolumeClaim{}}
	for i, o := range objects {
		if !m.add(o) {
			return nil, fmt.Errorf("items[%d]: a %s is no part of a snapshot, only %s are", i,
				o.GetObjectKind().GroupVersionKind().Kind, kindNames())
		}
	}
	return m, nil
}

// add takes an object in; false for one that decisions do not depend on.
func (m *mesh) add(object runtime.Object) bool {
	switch o := object.(type) {
	case *corev1.Node:
		m.nodes = append(m.nodes, o)
	case *corev1.Pod:
		m.pods = append(m.pods, o)
	case *appsv1.DaemonSet:
		m.daemonSets = append(m.daemonSets, o)
	case *schedulingv1.PriorityClass:
		m.priorities = append(m.priorities, o)
	case *nodev1.RuntimeClass:
		m.runtimes = append(m.runtimes, o)
	case *storagev1.StorageClass:
		m.classes = append(m.classes, o)
	case *corev1.PersistentVolumeClaim:
		m.claims[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = o
	case *corev1.PersistentVolume, *corev1.Service, *corev1.ReplicationController, *appsv1.ReplicaSet,
		*appsv1.StatefulSet, *corev1.Namespace, *policyv1.PodDisruptionBudget, *schedulingv1beta1.PodGroup,
		*storagev1.CSINode, *storagev1.VolumeAttachment, *storagev1.CSIDriver, *storagev1.CSIStorageCapacity,
		*resourcev1.ResourceClaim:
		m.others = append(m.others, o)
	default:
		return false
	}
	return true
}

// node returns the node of the name, nil where there is none.
func (m *mesh) node(name string) *corev1.Node {
	if i := slices.IndexFunc(m.nodes, func(n *corev1.Node) bool { return n.Name == name }); i >= 0 {
		return m.nodes[i]
	}
	return nil
}

// zones returns the zones that there are, sorted.
func (m *mesh) zones() []string {
	var out []string
	for _, n := range m.nodes {
		if zone, ok := n.Labels[corev1.LabelTopologyZone]; ok {
			out = append(out, zone)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// lose removes nodes. It returns the Pods on them that their controllers would recreate, without a node, and the names
// of those that no controller recreates. Those of a DaemonSet go with their node.
func (m *mesh) lose(gone func(*corev1.Node) bool) (again []*corev1.Pod, lost []string) {
	names := map[string]bool{}
	m.nodes = slices.DeleteFunc(m.nodes, func(n *corev1.Node) bool {
		names[n.Name] = names[n.Name] || gone(n)
		return names[n.Name]
	})
	m.pods = slices.DeleteFunc(m.pods, func(p *corev1.Pod) bool {
		if !names[p.Spec.NodeName] {
			return false
		}
		if made, ok := recreated(p); ok {
			again = append(again, made)
		} else if metav1.GetControllerOfNoCopy(p) == nil && p.DeletionTimestamp == nil {
			lost = append(lost, p.Namespace+"/"+p.Name)
		}
		return true
	})
	slices.Sort(lost)
	return again, lost
}

// recreated returns the Pod that a controller makes in place of one that is gone; false if no controller does.
func recreated(p *corev1.Pod) (*corev1.Pod, bool) {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil || owner.Kind == "DaemonSet" || owner.Kind == "Node" || p.DeletionTimestamp != nil {
		return nil, false
	}
	again := p.DeepCopy()
	again.UID = "again-" + p.UID
	again.Spec.NodeName, again.Status = "", corev1.PodStatus{}
	return again, true
}

// gain adds nodes made of one, and returns the Pods that the DaemonSets put there.
func (m *mesh) gain(of *corev1.Node, count int) ([]*corev1.Pod, error) {
	added, names := make([]*corev1.Node, 0, count), make(map[string]bool, len(m.nodes))
	for _, n := range m.nodes {
		names[n.Name] = true
	}
	for i := range count {
		n := of.DeepCopy()
		if count > 1 {
			n.Name = fmt.Sprintf("%s-%d", of.Name, i+1)
		}
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[corev1.LabelHostname] = n.Name
		if names[n.Name] {
			return nil, fmt.Errorf("metadata.name: there is a node %s already, the name must be another", n.Name)
		}
		added = append(added, n)
	}
	m.nodes = append(m.nodes, added...)
	var pods []*corev1.Pod
	for _, set := range m.daemonSets {
		for _, p := range daemonPods(set, added) {
			if err := m.runBy(p); err != nil {
				return nil, fmt.Errorf("DaemonSet %s/%s: %w", set.Namespace, set.Name, err)
			}
			pods = append(pods, p)
		}
		if err := bounded(pods); err != nil {
			return nil, fmt.Errorf("DaemonSet %s/%s: %w", set.Namespace, set.Name, err)
		}
	}
	return pods, nil
}
