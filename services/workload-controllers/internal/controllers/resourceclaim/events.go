package resourceclaim

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/events"
)

// eventSource is the source that users see on the events.
const eventSource = "resource_claim"

const reasonFailed = "FailedResourceClaimCreation"

// noTemplate reports that the template of a claim does not exist.
func noTemplate(asked *corev1.PodResourceClaim) events.Event {
	return events.Warning(reasonFailed, "PodResourceClaim %s: resource claim template %q not found", asked.Name,
		*asked.ResourceClaimTemplateName)
}

// refused reports that a claim could not be created.
func refused(made NewClaim, err error) events.Event {
	return events.Warning(reasonFailed, "PodResourceClaim %s: create ResourceClaim %s: %v", made.Name,
		made.Claim.GenerateName, err)
}
