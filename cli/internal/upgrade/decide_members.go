package upgrade

import (
	"fmt"
	"strings"
)

// Member is one machine's copy of the store, and its apiserver.
type Member struct {
	// Machine is the name of its node, or its address.
	Machine string
	// Counts is set if writes wait for it, Self if it is this machine's.
	Counts, Self bool
	// Fault says why its apiserver is not ready; empty if it is.
	Fault string
}

// CheckMembers says whether the mesh can do without this machine's apiserver and its copy of the store for the moment.
// It returns a problem that somebody has to mend first, or else a sentence about what users notice.
func CheckMembers(members []Member) (problem, notice string) {
	var voters, ready int
	var faults, names []string
	for _, m := range members {
		if !m.Counts {
			continue
		}
		voters++
		switch {
		case m.Self:
		case m.Fault != "":
			faults = append(faults, m.Machine+" ("+m.Fault+")")
		default:
			ready++
			names = append(names, m.Machine)
		}
	}
	majority := voters/2 + 1
	switch {
	case voters <= 1:
		return "", "the API is away for some seconds, since no other machine has it: clients that try again notice " +
			"no more, and Pods go on"
	case len(faults) == 0 && ready < majority:
		return "", fmt.Sprintf("the API is away for some seconds, on %s too: of %d machines that have the store none "+
			"may be missing; clients that try again notice no more, and Pods go on", strings.Join(names, ", "), voters)
	case ready < majority:
		return fmt.Sprintf("without this machine the store had no majority, since no apiserver answers as ready on "+
			"%s: bring it back first (keel join there), or take out what does not come back by keel store "+
			"remove-member", strings.Join(faults, ", ")), ""
	}
	return "", "the API stays on " + strings.Join(names, ", ")
}
