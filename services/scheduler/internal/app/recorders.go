package app

import (
	"fmt"
	"hash/fnv"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"keelson.dev/kit/events"
	"keelson.dev/services/scheduler/internal/rules"
)

// shards is how many writers of Events a profile has. One writes an Event at a time, and each placed Pod makes one.
const shards = 8

// recorders write Events in the name of the profile that decided, as users know it from `kubectl describe`.
type recorders map[string][shards]*events.Recorder

func newRecorders(config *rest.Config, profiles []rules.Profile) (recorders, error) {
	r := recorders{}
	for _, p := range profiles {
		var of [shards]*events.Recorder
		for i := range of {
			recorder, err := events.NewRecorder(config, scheme.Scheme, p.Name, "")
			if err != nil {
				return nil, fmt.Errorf("recording events for profile %s: %w", p.Name, err)
			}
			of[i] = recorder
		}
		r[p.Name] = of
	}
	return r, nil
}

// record writes the Event. All of one Pod go through one writer, which counts repeated ones up.
func (r recorders) record(p *corev1.Pod, e events.Event) {
	of, ok := r[p.Spec.SchedulerName]
	if !ok {
		return
	}
	h := fnv.New32a()
	_, _ = io.WriteString(h, string(p.UID))
	of[h.Sum32()%shards].Record(&corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
	}, e)
}

func (r recorders) stop() {
	for _, of := range r {
		for _, recorder := range of {
			recorder.Stop()
		}
	}
}
