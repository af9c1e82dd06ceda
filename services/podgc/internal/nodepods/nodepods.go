// Package nodepods groups Pods by their nodes.
package nodepods

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Index finds the Pods of a node. The zero value is empty. The Pods in it are shared and never changed.
type Index struct {
	nodes map[string]map[types.UID]*corev1.Pod
}

// Replace takes in the present state of a Pod in place of its last: the last is nil for one that is new, the present
// one for one that is gone.
func (i *Index) Replace(last, now *corev1.Pod) {
	if last != nil && (now == nil || last.UID != now.UID || last.Spec.NodeName != now.Spec.NodeName) {
		i.remove(last)
	}
	if now == nil || now.Spec.NodeName == "" {
		return
	}
	if i.nodes == nil {
		i.nodes = map[string]map[types.UID]*corev1.Pod{}
	}
	if i.nodes[now.Spec.NodeName] == nil {
		i.nodes[now.Spec.NodeName] = map[types.UID]*corev1.Pod{}
	}
	i.nodes[now.Spec.NodeName][now.UID] = now
}

func (i *Index) remove(pod *corev1.Pod) {
	of := i.nodes[pod.Spec.NodeName]
	delete(of, pod.UID)
	if len(of) == 0 {
		delete(i.nodes, pod.Spec.NodeName)
	}
}

// On returns the Pods that are bound to the node, in no order.
func (i *Index) On(node string) []*corev1.Pod { return appendAll(nil, i.nodes[node]) }

// Elsewhere returns the Pods that are bound to any other node than these, in no order.
func (i *Index) Elsewhere(nodes map[string]*corev1.Node) []*corev1.Pod {
	var pods []*corev1.Pod
	for name, of := range i.nodes {
		if nodes[name] == nil {
			pods = appendAll(pods, of)
		}
	}
	return pods
}

func appendAll(pods []*corev1.Pod, of map[types.UID]*corev1.Pod) []*corev1.Pod {
	for _, pod := range of {
		pods = append(pods, pod)
	}
	return pods
}
