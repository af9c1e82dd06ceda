package app

import (
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// knownTolerations is how many lists are kept to be shared; beyond, the memory starts anew.
const knownTolerations = 1000

// evictionTolerations are those of all Pods in the cache.
var evictionTolerations = tolerations{shared: map[string][]corev1.Toleration{}}

// tolerations lets Pods that tolerate the same share one list: nearly all of them have the defaults or what their
// DaemonSet got. It is safe for concurrent use.
type tolerations struct {
	mu     sync.Mutex // guards shared
	shared map[string][]corev1.Toleration
}

// of returns the tolerations of the list that concern evictions.
func (t *tolerations) of(list []corev1.Toleration) []corev1.Toleration {
	var name strings.Builder
	for i := range list {
		if concernsEviction(&list[i]) {
			fmt.Fprintf(&name, "%q %q %q %q %d %t\n", list[i].Key, list[i].Operator, list[i].Value, list[i].Effect,
				ptr.Deref(list[i].TolerationSeconds, 0), list[i].TolerationSeconds != nil)
		}
	}
	if name.Len() == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.shared[name.String()]; known != nil {
		return known
	}
	var kept []corev1.Toleration
	for i := range list {
		if concernsEviction(&list[i]) {
			kept = append(kept, *list[i].DeepCopy())
		}
	}
	if len(t.shared) >= knownTolerations {
		clear(t.shared)
	}
	t.shared[name.String()] = kept
	return kept
}

func concernsEviction(t *corev1.Toleration) bool {
	return t.Effect == "" || t.Effect == corev1.TaintEffectNoExecute
}
