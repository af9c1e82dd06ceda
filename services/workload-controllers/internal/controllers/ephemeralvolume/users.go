package ephemeralvolume

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// users holds the Pods by the names of their ephemeral volumes' claims. It is safe for concurrent use.
type users struct {
	mu   sync.Mutex // guards pods
	pods map[types.NamespacedName][]string
}

func newUsers() *users { return &users{pods: map[types.NamespacedName][]string{}} }

func (u *users) add(pod *corev1.Pod, claims []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, claim := range claims {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: claim}
		if !slices.Contains(u.pods[key], pod.Name) {
			u.pods[key] = append(u.pods[key], pod.Name)
		}
	}
}

func (u *users) remove(pod *corev1.Pod, claims []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, claim := range claims {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: claim}
		left := slices.DeleteFunc(u.pods[key], func(name string) bool { return name == pod.Name })
		if u.pods[key] = left; len(left) == 0 {
			delete(u.pods, key)
		}
	}
}

// of returns the names of the Pods that use a claim of the name.
func (u *users) of(claim types.NamespacedName) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.pods[claim])
}
