package podworker

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/observed"
)

// Listed takes in what the runtime runs. A running Pod holds back all others of its name until it has stopped,
// whether the API still has it or not.
func (p *Pool) Listed(pods []observed.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listed = true
	clear(p.live)
	for i := range pods {
		uid := types.UID(pods[i].UID)
		if pods[i].Live() && !p.deleted[uid] {
			p.live[uid] = types.NamespacedName{Namespace: pods[i].Namespace, Name: pods[i].Name}
		}
	}
	for _, w := range p.workers {
		if !w.updates.begun {
			w.wakeUp()
		}
	}
}

// enter returns why the Pod must not start yet. Once it may, it holds back the others of its name itself.
func (w *worker) enter() string {
	p := w.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.updates.begun {
		return ""
	}
	why := holdReason(p.listed, p.namesakesLocked(w.uid, nameOf(w.updates.Allocated)))
	w.updates.begun = why == ""
	return why
}

func (p *Pool) namesakesLocked(uid types.UID, name types.NamespacedName) []namesake {
	var out []namesake
	for _, w := range p.workers {
		if w.uid != uid && w.standsLocked() && nameOf(w.updates.Allocated) == name {
			out = append(out, namesake{uid: w.uid, forgotten: w.updates.removed})
		}
	}
	for other, its := range p.live {
		if other != uid && its == name && p.workers[other] == nil {
			out = append(out, namesake{uid: other})
		}
	}
	return out
}

// standsLocked reports whether something of the Pod may run.
func (w *worker) standsLocked() bool { return w.updates.begun && !w.updates.view.Plan.Stopped }

// freeLocked wakes the Pods of that name that wait to start.
func (p *Pool) freeLocked(name types.NamespacedName) {
	for _, w := range p.workers {
		if !w.updates.begun && nameOf(w.updates.Allocated) == name {
			w.wakeUp()
		}
	}
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
