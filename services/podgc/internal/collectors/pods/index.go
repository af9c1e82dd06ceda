package pods

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
)

// index knows which Pods a sweep may have to do with, so that none of the others costs it anything. It is safe for
// concurrent use. The Pods in it are shared and never changed.
type index struct {
	mu sync.Mutex // guards what follows
	// terminating are being deleted, finished have ended and are not.
	terminating, finished set
}

type set map[types.UID]*corev1.Pod

func newIndex() *index {
	return &index{terminating: set{}, finished: set{}}
}

// put takes in a Pod as it is now.
func (i *index) put(pod *corev1.Pod) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.drop(pod.UID)
	switch {
	case podview.IsTerminating(pod):
		i.terminating[pod.UID] = pod
	case podview.IsTerminal(pod):
		i.finished[pod.UID] = pod
	}
}

// remove forgets a Pod.
func (i *index) remove(uid types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.drop(uid)
}

func (i *index) drop(uid types.UID) {
	delete(i.terminating, uid)
	delete(i.finished, uid)
}

// relevant returns the Pods on which a sweep's decision depends, given those that are on nodes that are not known: a
// decision on all Pods would be the same.
func (i *index) relevant(elsewhere []*corev1.Pod, threshold int) []*corev1.Pod {
	i.mu.Lock()
	defer i.mu.Unlock()
	chosen := set{}
	take := func(from set) {
		for uid, pod := range from {
			chosen[uid] = pod
		}
	}
	for _, pod := range elsewhere {
		chosen[pod.UID] = pod
	}
	take(i.terminating)
	if threshold > 0 && len(i.finished) > threshold {
		take(i.finished)
	}
	pods := make([]*corev1.Pod, 0, len(chosen))
	for _, pod := range chosen {
		pods = append(pods, pod)
	}
	return pods
}
