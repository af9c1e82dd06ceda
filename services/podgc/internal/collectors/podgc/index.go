package podgc

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
)

// index knows which Pods a sweep may have to do with, so that none of the others costs it anything. It is safe for
// concurrent use. The Pods in it are shared and never changed.
type index struct {
	mu     sync.Mutex // guards what follows
	pods   map[types.UID]*corev1.Pod
	byNode map[string]set
	// leaving are being deleted, finished have ended and are not.
	leaving, finished set
}

type set map[types.UID]*corev1.Pod

func newIndex() *index {
	return &index{pods: set{}, byNode: map[string]set{}, leaving: set{}, finished: set{}}
}

// put takes in a Pod as it is now.
func (x *index) put(pod *corev1.Pod) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(pod.UID)
	x.pods[pod.UID] = pod
	if node := pod.Spec.NodeName; node != "" {
		if x.byNode[node] == nil {
			x.byNode[node] = set{}
		}
		x.byNode[node][pod.UID] = pod
	}
	switch {
	case podview.IsTerminating(pod):
		x.leaving[pod.UID] = pod
	case podview.IsTerminal(pod):
		x.finished[pod.UID] = pod
	}
}

// remove forgets a Pod.
func (x *index) remove(uid types.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(uid)
}

func (x *index) drop(uid types.UID) {
	last := x.pods[uid]
	if last == nil {
		return
	}
	delete(x.pods, uid)
	delete(x.leaving, uid)
	delete(x.finished, uid)
	of := x.byNode[last.Spec.NodeName]
	delete(of, uid)
	if len(of) == 0 {
		delete(x.byNode, last.Spec.NodeName)
	}
}

// concerned returns the Pods on which a sweep's decision depends: a decision on all Pods would be the same.
func (x *index) concerned(nodes map[string]*corev1.Node, threshold int) []*corev1.Pod {
	x.mu.Lock()
	defer x.mu.Unlock()
	chosen := set{}
	take := func(from set) {
		for uid, pod := range from {
			chosen[uid] = pod
		}
	}
	for node, of := range x.byNode {
		if nodes[node] == nil {
			take(of)
		}
	}
	take(x.leaving)
	if threshold > 0 && len(x.finished) > threshold {
		take(x.finished)
	}
	pods := make([]*corev1.Pod, 0, len(chosen))
	for _, pod := range chosen {
		pods = append(pods, pod)
	}
	return pods
}
