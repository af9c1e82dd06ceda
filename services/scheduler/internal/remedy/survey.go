package remedy

import (
	"slices"
	"strings"

	"keelson.dev/services/scheduler/internal/columns"
)

const (
	// maxChanges is how many changes a Report has at most.
	maxChanges = 5
	// maxTries is how many changes of one kind are judged before the kind is given up.
	maxTries = 8
)

// Report is what speaks against the nodes, and what would help.
type Report struct {
	// Groups are the nodes against which the same speaks, the largest group first.
	Groups []Group
	// Changes are what would make the Pod fit, the smallest of each kind, the least to do first; none where a node can
	// take the Pod.
	Changes []Change
}

// Group is nodes that are refused alike.
type Group struct {
	// Findings are what each rule says; nothing where the nodes can take the Pod.
	Findings []Finding
	// Nodes are their names, sorted.
	Nodes []string
}

// Finding is what a rule says against a node.
type Finding struct{ Rule, Text string }

// Survey judges every node by every rule, also by those after the first that refuses it.
func Survey(s *columns.State, sub Subject) Report {
	j := newJudges(s, sub)
	defer j.close()
	f := finder{state: s, subject: sub, judges: j, kinds: map[string]*kind{}}
	groups, byKey := []*Group{}, map[string]*Group{}
	for slot := range columns.Slot(s.Slots()) {
		if !s.Known(slot) {
			continue
		}
		view := s.View(slot)
		found := j.refusals(j.node(slot), view)
		key := groupKey(found)
		g := byKey[key]
		if g == nil {
			g = &Group{Findings: j.findings(found)}
			groups, byKey[key] = append(groups, g), g
		}
		g.Nodes = append(g.Nodes, s.Name(slot))
		if len(found) > 0 {
			f.consider(slot, view, found)
		}
	}
	var report Report
	for _, g := range groups {
		slices.Sort(g.Nodes)
		report.Groups = append(report.Groups, *g)
	}
	slices.SortFunc(report.Groups, func(a, b Group) int {
		if len(a.Nodes) != len(b.Nodes) {
			return len(b.Nodes) - len(a.Nodes)
		}
		return strings.Compare(a.Nodes[0], b.Nodes[0])
	})
	if !report.Feasible() {
		report.Changes = f.changes()
	}
	return report
}

func groupKey(found []refusal) string {
	b := make([]byte, 0, 16*len(found))
	for _, r := range found {
		b = append(b, byte(r.filter))
		for shift := 0; shift < 64; shift += 8 {
			b = append(b, byte(r.reasons>>shift))
		}
	}
	return string(b)
}

func (j *judges) findings(found []refusal) []Finding {
	var out []Finding
	for _, r := range found {
		out = append(out, Finding{Rule: j.filters[r.filter].Rule, Text: strings.Join(j.texts(r), ", ")})
	}
	return out
}

// Feasible reports whether a node can take the Pod.
func (r *Report) Feasible() bool {
	return slices.ContainsFunc(r.Groups, func(g Group) bool { return len(g.Findings) == 0 })
}
