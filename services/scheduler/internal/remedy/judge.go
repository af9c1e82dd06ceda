// Package remedy says what speaks against each node for a Pod, rule by rule, and which small change of the Pod or of a
// node would make it fit. Each change that it returns was judged: with it the Pod fits.
//
// The package is pure and reads the columns as they are. A question looks at every node once, and once more for each
// change; it is what an operator asks, not what placing a Pod needs.
//
//keelson:decision
package remedy

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rules"
)

// Subject is the Pod in question.
type Subject struct {
	Profile *rules.Profile
	Pod     rules.Pod
	// UID is whose room on a node counts as free.
	UID types.UID
}

// judges are the filters of a Pod. Close must be called.
type judges struct {
	state   *columns.State
	uid     types.UID
	filters []*rules.Filter
	tables  [][]*columns.Domains // by filter
	byShape map[columns.ShapeID][]rules.Reasons
	domains []columns.Domain
	trial   columns.Trial
}

func newJudges(s *columns.State, sub Subject) *judges {
	j := &judges{state: s, uid: sub.UID, filters: sub.Profile.Make(sub.Pod).Filters,
		byShape: map[columns.ShapeID][]rules.Reasons{}}
	for _, f := range j.filters {
		var tables []*columns.Domains
		for _, count := range f.Judge.Counts() {
			tables = append(tables, s.Domains(count))
		}
		j.tables = append(j.tables, tables)
	}
	return j
}

func (j *judges) close() {
	for _, tables := range j.tables {
		for _, t := range tables {
			t.Release()
		}
	}
}

// looksAtDomains reports whether a filter counts the Pods of several nodes, or over nodes that the Pod selects.
func (j *judges) looksAtDomains() bool {
	return slices.ContainsFunc(j.tables, func(t []*columns.Domains) bool { return len(t) > 0 })
}

// node returns the room of a node as the Pod finds it: what is kept there for it is free.
func (j *judges) node(slot columns.Slot) columns.Node {
	if j.uid == "" || j.state.ReservedFor(j.uid) != slot {
		return j.state.Node(slot)
	}
	j.trial.Start(j.state, slot)
	for _, r := range j.state.Reservations(slot) {
		if r.UID == j.uid {
			j.trial.Release(&r)
		}
	}
	return j.trial.Node()
}

// refusal is what one filter has against a node.
type refusal struct {
	filter  int
	reasons rules.Reasons
}

// refusals returns what all filters have against a node.
func (j *judges) refusals(n columns.Node, v columns.View) []refusal {
	var out []refusal
	for i := range j.filters {
		if r := j.judge(i, n, v); r != 0 {
			out = append(out, refusal{filter: i, reasons: r})
		}
	}
	return out
}

// fits reports whether no filter refuses the node.
func (j *judges) fits(n columns.Node, v columns.View) bool {
	for i := range j.filters {
		if j.judge(i, n, v) != 0 {
			return false
		}
	}
	return true
}

func (j *judges) judge(i int, n columns.Node, v columns.View) rules.Reasons {
	judge := j.filters[i].Judge
	switch judge.On() {
	case rules.OnRoom:
		return judge.Node(n)
	case rules.OnDomain:
		j.domains = j.domains[:0]
		for _, t := range j.tables[i] {
			j.domains = append(j.domains, n.Domain(t))
		}
		return judge.Domains(j.domains)
	case rules.OnShape:
		if v.ID != 0 {
			return j.ofShape(i, v)
		}
	}
	return judge.View(v)
}

// ofShape judges a shape once.
func (j *judges) ofShape(i int, v columns.View) rules.Reasons {
	const unknown = ^rules.Reasons(0)
	known := j.byShape[v.ID]
	if known == nil {
		known = make([]rules.Reasons, len(j.filters))
		for f := range known {
			known[f] = unknown
		}
		j.byShape[v.ID] = known
	}
	if known[i] == unknown {
		known[i] = j.filters[i].Judge.View(v)
	}
	return known[i]
}

// texts returns the words of a refusal.
func (j *judges) texts(r refusal) []string {
	var out []string
	for i, text := range j.filters[r.filter].Texts {
		if r.reasons&(1<<i) != 0 && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
