package servicecidr

import (
	"fmt"
	"strings"

	"keelson.dev/kit/explain"
)

// shownAddresses is how many addresses a sentence names before it only counts them.
const shownAddresses = 5

// account explains a decision.
func account(in Input, plan Plan) explain.Account {
	a := explain.Account{Settled: "cluster IPs are given out of " + strings.Join(in.Range.Spec.CIDRs, " and ")}
	if plan.Hold {
		a.Do(1, "keeps it from going while its addresses are in use")
	}
	if plan.Release {
		a.Do(1, "lets it go: none of its addresses is in use")
	}
	gone := in.Range.DeletionTimestamp
	switch {
	case len(plan.InUse) > 0:
		a.Wait(explain.Wait{Since: gone.Time, Reason: "Terminating", For: fmt.Sprintf("%s to be given back: %s",
			count(len(plan.InUse)), shown(plan)),
			Ends: "the Services that have them are gone, or another ServiceCIDR has these addresses too"})
	case plan.After > 0:
		a.Wait(explain.Wait{Since: gone.Time, Reason: "Terminating", For: "all apiservers to notice that it goes",
			Ends: "it is " + explain.At(gone.Add(notice))})
	}
	return a
}

func count(n int) string {
	if n == 1 {
		return "1 address"
	}
	return fmt.Sprintf("%d addresses", n)
}

func shown(plan Plan) string {
	var names []string
	for _, ip := range plan.InUse[:min(len(plan.InUse), shownAddresses)] {
		names = append(names, ip.String())
	}
	text := strings.Join(names, ", ")
	if more := len(plan.InUse) - shownAddresses; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
