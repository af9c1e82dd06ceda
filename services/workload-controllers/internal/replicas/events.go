package replicas

import "keelson.dev/kit/events"

// Reasons of events and of the condition ReplicaFailure.
const (
	reasonFailedCreate = "FailedCreate"
	reasonFailedDelete = "FailedDelete"
)

// scalingFailed says why Pods could not be created or deleted; the message is the condition's, too.
func scalingFailed(reason, message string) events.Event {
	return events.Warning(reason, "%s", message)
}
