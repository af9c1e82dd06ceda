package nodeipam

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/events"
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Node *corev1.Node
	// Held are the ranges assigned to the node, written or not.
	Held []netip.Prefix
	// Offers are what a new node gets from each cluster range.
	Offers []Offer
}

// Offer is what one cluster range offers to the next node.
type Offer struct {
	Cluster netip.Prefix
	// Bits is the prefix length of a share.
	Bits int
	// Share is a free share; the zero Prefix means that none is free.
	Share netip.Prefix
}

// Plan names every effect of one pass.
type Plan struct {
	// Assign are the ranges to write into the Node; none if it has its ranges, or cannot get them.
	Assign []netip.Prefix
	// Full are the cluster ranges without a free share.
	Full   []Offer
	Events []events.Event
}

// Decide assigns a Node without ranges a share of every cluster range, or none at all. A Node that has ranges keeps
// them, whoever assigned them. A Node whose assignment may still be being written gets the same ranges again.
func Decide(in Input) Plan {
	if len(rangesOf(in.Node)) > 0 {
		return Plan{}
	}
	if len(in.Held) > 0 {
		return Plan{Assign: in.Held}
	}
	var plan Plan
	for _, offer := range in.Offers {
		if !offer.Share.IsValid() {
			plan.Full = append(plan.Full, offer)
		}
		plan.Assign = append(plan.Assign, offer.Share)
	}
	if len(plan.Full) > 0 {
		plan.Assign = nil
		plan.Events = []events.Event{notAvailable(plan.Full)}
	}
	return plan
}

// rangesOf returns the Node's valid ranges.
func rangesOf(node *corev1.Node) []netip.Prefix {
	texts := node.Spec.PodCIDRs
	if len(texts) == 0 && node.Spec.PodCIDR != "" {
		texts = []string{node.Spec.PodCIDR}
	}
	var ranges []netip.Prefix
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			ranges = append(ranges, prefix)
		}
	}
	return ranges
}

// fullText lists the exhausted cluster ranges.
func fullText(full []Offer) string {
	var texts []string
	for _, offer := range full {
		texts = append(texts, fmt.Sprintf("all %d shares (/%d) of %s", 1<<(offer.Bits-offer.Cluster.Bits()), offer.Bits,
			offer.Cluster))
	}
	return strings.Join(texts, " and ")
}
