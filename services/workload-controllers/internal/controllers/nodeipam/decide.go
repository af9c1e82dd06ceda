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
	// Held is what the node has been given, written or not.
	Held []netip.Prefix
	// Offers are what a new node gets of each range of the cluster.
	Offers []Offer
}

// Offer is what one range of the cluster has for the next node.
type Offer struct {
	Cluster netip.Prefix
	// Bits is the prefix length of a share.
	Bits int
	// Share is free; the zero Prefix says that none is.
	Share netip.Prefix
}

// Plan names every effect of one pass.
type Plan struct {
	// Assign is what is written into the Node; nothing where it has its ranges, or cannot have them.
	Assign []netip.Prefix
	// Full are the ranges of the cluster of which no share is free.
	Full   []Offer
	Events []events.Event
}

// Decide gives a Node without ranges a share of each range of the cluster, or none. A Node that has ranges keeps them,
// whoever gave them. One for which a write may be under way gets the same again.
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

// rangesOf returns the Node's ranges; what is no range is left out.
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

// fullText says which ranges of the cluster are given away.
func fullText(full []Offer) string {
	var texts []string
	for _, offer := range full {
		texts = append(texts, fmt.Sprintf("all %d shares (/%d) of %s", 1<<(offer.Bits-offer.Cluster.Bits()), offer.Bits,
			offer.Cluster))
	}
	return strings.Join(texts, " and ")
}
