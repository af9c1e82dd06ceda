package app

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"keelson.dev/kit/events"
	"keelson.dev/services/scheduler/internal/rules"
)

// recorders write Events in the name of the profile that decided, as users know it from `kubectl describe`.
type recorders map[string]*events.Recorder

func newRecorders(config *rest.Config, profiles []rules.Profile) (recorders, error) {
	r := recorders{}
	for _, p := range profiles {
		recorder, err := events.NewRecorder(config, scheme.Scheme, p.Name, "")
		if err != nil {
			r.stop()
			return nil, fmt.Errorf("recording events for profile %s: %w", p.Name, err)
		}
		r[p.Name] = recorder
	}
	return r, nil
}

func (r recorders) record(p *corev1.Pod, e events.Event) {
	if recorder := r[p.Spec.SchedulerName]; recorder != nil {
		recorder.Record(p, e)
	}
}

func (r recorders) stop() {
	for _, recorder := range r {
		recorder.Stop()
	}
}
