package nodeipam

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"keelson.dev/kit/explain"
)

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	a := explain.Account{Settled: settled(in)}
	a.Do(len(plan.Assign), "gives it the Pod range %s", join(plan.Assign))
	if len(plan.Full) > 0 {
		a.Wait(explain.Wait{Reason: reasonNotAvailable, For: "a Pod range: " + fullText(plan.Full) + " are in use",
			Ends: "another Node is deleted, or --cluster-cidr is made larger"})
	}
	return a
}

// settled lists the Node's ranges, and those of them outside the cluster ranges.
func settled(in Input) string {
	ranges := rangesOf(in.Node)
	var foreign []netip.Prefix
	for _, prefix := range ranges {
		inside := slices.ContainsFunc(in.Offers, func(o Offer) bool {
			return o.Cluster.Overlaps(prefix) && o.Cluster.Bits() <= prefix.Bits()
		})
		if !inside {
			foreign = append(foreign, prefix)
		}
	}
	text := "it has the Pod range " + join(ranges)
	if len(foreign) > 0 {
		text += fmt.Sprintf("; %s is not of --cluster-cidr and is left as it is", join(foreign))
	}
	return text
}

func join(ranges []netip.Prefix) string {
	texts := make([]string, len(ranges))
	for i, prefix := range ranges {
		texts[i] = prefix.String()
	}
	return strings.Join(texts, " and ")
}
