package endpointslice

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/events"
)

// eventSource is the source that users see on the events.
const eventSource = "endpoint-slice-controller"

// failed reports why the slices of a Service could not be written.
func failed(service *corev1.Service, err error) events.Event {
	return events.Warning("FailedToUpdateEndpointSlices", "Error updating Endpoint Slices for Service %s/%s: %v",
		service.Namespace, service.Name, err)
}
