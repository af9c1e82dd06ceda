package nodeipam

import (
	"keelson.dev/kit/events"
)

// eventSource is the source that users see on the events.
const eventSource = "cidrAllocator"

const reasonNotAvailable = "CIDRNotAvailable"

// notAvailable reports that a Node gets no Pod ranges.
func notAvailable(full []Offer) events.Event {
	return events.Warning(reasonNotAvailable, "Node has no podCIDR: %s of --cluster-cidr are in use", fullText(full))
}
