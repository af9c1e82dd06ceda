package upgrade

import (
	"slices"

	"keelson.dev/cli/internal/plan"
)

// Daemons are those that are replaced, in the order in which they are: none may be newer than the apiserver of its
// machine, and a node not newer than any apiserver. They go back in the other order.
var Daemons = []string{plan.APIServer, plan.Scheduler, plan.WorkloadControllers, plan.PodGC, Nodeagent}

// Candidate is a daemon of this machine, and what it may be replaced by.
type Candidate struct {
	Change
	// Fault says why there is nothing to replace it by; empty if there is.
	Fault string
	// Rests is set if it is what is wanted, Begun if an earlier run has begun with it, so that it has to come to an
	// end.
	Rests, Begun bool
}

// PlanInput is what a plan is made from.
type PlanInput struct {
	// Asked are the daemons that the user has named; none are all of this machine.
	Asked []string
	// Candidates are the daemons of this machine that are to be looked at.
	Candidates []Candidate
	// Node is the name of this machine's node.
	Node string
	// Back is set if the daemons are to go back, Force if they are to be replaced however the mesh is.
	Back, Force bool
	// Fleet and Members are what the mesh has said of itself, Fault why it has not.
	Fleet   Fleet
	Members []Member
	Fault   string
}

// Plan is what is to be done on this machine.
type Plan struct {
	// Changes are the replacements in their order, Resting the daemons that stay as they are wanted.
	Changes, Resting []Change
	// Later are the reasons why daemons wait for other machines.
	Later []string
	// Problems are the reasons why nothing is done. Notes say what somebody should know before it is.
	Problems, Notes []string
}

// DecidePlan decides which daemons are replaced, and in which order.
func DecidePlan(in PlanInput) Plan {
	p := &Plan{}
	fleet, disturbs := in.Fleet, false
	for _, c := range in.ordered() {
		switch {
		case c.Fault != "":
			p.Problems = append(p.Problems, c.Fault)
			continue
		case c.Rests && !c.Begun:
			p.Resting = append(p.Resting, c.Change)
			continue
		case !c.Begun:
			// What the mesh runs was right for what has begun, and whatever it is now: that has to come to an end.
			if !p.judge(c.Change, fleet, in) {
				continue
			}
			disturbs = disturbs || c.Daemon == plan.APIServer
		}
		p.Changes = append(p.Changes, c.Change)
		fleet = fleet.after(c.Change, in.Node)
	}
	if p.needsMesh(in) {
		p.judgeMesh(in, disturbs)
	}
	return *p
}

// ordered returns the candidates in the order of their replacement.
func (in PlanInput) ordered() []Candidate {
	sorted := slices.Clone(in.Candidates)
	slices.SortStableFunc(sorted, func(a, b Candidate) int {
		return slices.Index(Daemons, a.Daemon) - slices.Index(Daemons, b.Daemon)
	})
	if in.Back {
		slices.Reverse(sorted)
	}
	return sorted
}

// judge notes the objections to a change, and reports whether there are none. On a machine of the control plane, what
// nobody has named waits for other machines.
func (p *Plan) judge(change Change, fleet Fleet, in PlanInput) bool {
	objections, unknown := CheckVersions(change, fleet)
	if unknown != "" && !slices.Contains(p.Notes, unknown) {
		p.Notes = append(p.Notes, unknown)
	}
	for _, o := range objections {
		if o.Later && len(in.Asked) == 0 && fleet.Own != nil && change.Daemon == Nodeagent {
			p.Later = append(p.Later, o.Text)
			continue
		}
		p.Problems = append(p.Problems, o.Text)
	}
	return len(objections) == 0
}

// after is the fleet with a change.
func (f Fleet) after(change Change, node string) Fleet {
	switch change.Daemon {
	case plan.APIServer:
		f.Own = &change.To
	case Nodeagent:
		f.Agents = slices.Clone(f.Agents)
		for i := range f.Agents {
			if f.Agents[i].Machine == node {
				f.Agents[i].Version = change.To
			}
		}
	}
	return f
}

// needsMesh reports whether one of the changes was not begun before.
func (p *Plan) needsMesh(in PlanInput) bool {
	return slices.ContainsFunc(in.Candidates, func(c Candidate) bool {
		return !c.Begun && slices.ContainsFunc(p.Changes, func(change Change) bool { return change.Daemon == c.Daemon })
	})
}

// judgeMesh notes whether the mesh is well enough. Disturbs is set if it has to do without this machine's apiserver.
func (p *Plan) judgeMesh(in PlanInput, disturbs bool) {
	problem, notice := in.Fault, ""
	if problem == "" && disturbs {
		problem, notice = CheckMembers(in.Members)
	}
	switch {
	case problem == "":
	case in.Force:
		p.Notes = append(p.Notes, problem)
	default:
		p.Problems = append(p.Problems, problem+"; --force goes on all the same")
	}
	if notice != "" {
		p.Notes = append(p.Notes, notice)
	}
}
