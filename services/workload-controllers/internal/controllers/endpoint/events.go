package endpoint

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/events"
)

// eventSource is the source that users see on the events.
const eventSource = "endpoint-controller"

// failed reports why the Endpoints of a Service could not be written.
func failed(service *corev1.Service, plan Plan, err error) events.Event {
	if plan.Create != nil {
		return events.Warning("FailedToCreateEndpoint", "Failed to create endpoint for service %s/%s: %v",
			service.Namespace, service.Name, err)
	}
	return events.Warning("FailedToUpdateEndpoint", "Failed to update endpoint %s/%s: %v", service.Namespace,
		service.Name, err)
}
