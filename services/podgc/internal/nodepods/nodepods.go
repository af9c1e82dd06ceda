// Package nodepods groups Pods by their nodes.
//
//keelson:decision
package nodepods

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Index finds the Pods of a node. The zero value is empty. The Pods in it are shared and never changed.
type Index struct {
	// nodes has the Pods of each node, which are few, in no order.
	nodes map[string][]*corev1.Pod
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
		i.nodes = map[string][]*corev1.Pod{}
	}
	of := i.nodes[now.Spec.NodeName]
	if at := indexOf(of, now.UID); at >= 0 {
		of[at] = now
		return
	}
	i.nodes[now.Spec.NodeName] = append(of, now)
}

func (i *Index) remove(pod *corev1.Pod) {
	of := i.nodes[pod.Spec.NodeName]
	at := indexOf(of, pod.UID)
	switch {
	case at < 0:
	case len(of) == 1:
		delete(i.nodes, pod.Spec.NodeName)
	default:
		i.nodes[pod.Spec.NodeName] = slices.Delete(of, at, at+1)
	}
}

func indexOf(pods []*corev1.Pod, uid types.UID) int {
	return slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return pod.UID == uid })
}

// On returns the Pods that are bound to the node, in no order.
func (i *Index) On(node string) []*corev1.Pod { return slices.Clone(i.nodes[node]) }

// Elsewhere returns the Pods that are bound to any other node than these, in no order.
func (i *Index) Elsewhere(nodes map[string]*corev1.Node) []*corev1.Pod {
	var pods []*corev1.Pod
	for name, of := range i.nodes {
		if nodes[name] == nil {
			pods = append(pods, of...)
		}
	}
	return pods
}
