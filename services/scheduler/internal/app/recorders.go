package app

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"keelson.dev/kit/events"
	"keelson.dev/services/scheduler/internal/rules"
)

// recorders write Events in the name of the profile that decided, as users know it from `kubectl describe`.
type recorders map[string]*events.Recorder

func newRecorders(pool *events.Pool, profiles []rules.Profile) recorders {
	r := recorders{}
	for _, p := range profiles {
		r[p.Name] = pool.Recorder(scheme.Scheme, p.Name, "")
	}
	return r
}

func (r recorders) record(p *corev1.Pod, e events.Event) { r.recordAs(p.Spec.SchedulerName, p, e) }

// recordAs records an Event about a Pod that may be of another profile, or another scheduler's.
func (r recorders) recordAs(profile string, p *corev1.Pod, e events.Event) {
	of, ok := r[profile]
	if !ok {
		return
	}
	of.Record(&corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID,
		ResourceVersion: p.ResourceVersion,
	}, e)
}
