package job

import "keelson.dev/kit/events"

// eventSource is the source that users see on the events.
const eventSource = "job-controller"

const (
	suspendedMessage = "Job suspended"
	resumedMessage   = "Job resumed"
)

func createFailed(err error) events.Event {
	return events.Warning("FailedCreate", "Error creating: %v", err)
}

func deleteFailed(err error) events.Event {
	return events.Warning("FailedDelete", "Error deleting: %v", err)
}

func nowSuspended() events.Event { return events.Normal("Suspended", suspendedMessage) }

func resumed() events.Event { return events.Normal("Resumed", resumedMessage) }

func completed() events.Event { return events.Normal("Completed", "Job completed") }
