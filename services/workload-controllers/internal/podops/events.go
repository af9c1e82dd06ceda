package podops

import (
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/events"
)

// maxEvents is how many events one call records, which is what client-go's recorder lets through at once: beyond that
// it drops a flood about one object, and each event would only be work.
const maxEvents = 25

// Recorder emits events; events.Recorder implements it.
type Recorder interface {
	Record(object runtime.Object, e events.Event)
}

// RecordCreated records the Pods that were created, on their owner.
func RecordCreated(r Recorder, owner runtime.Object, outcomes []Outcome) {
	record(r, owner, outcomes, "SuccessfulCreate", "Created pod: %s")
}

// RecordDeleted records the Pods that were deleted, on their owner.
func RecordDeleted(r Recorder, owner runtime.Object, outcomes []Outcome) {
	record(r, owner, outcomes, "SuccessfulDelete", "Deleted pod: %s")
}

func record(r Recorder, owner runtime.Object, outcomes []Outcome, reason, format string) {
	for _, outcome := range outcomes[:min(maxEvents, len(outcomes))] {
		if outcome.Err == nil {
			r.Record(owner, events.Normal(reason, format, outcome.Name))
		}
	}
}
