package upgrade

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"keelson.dev/cli/internal/plan"
)

// candidates are daemons that go from one version to another.
func candidates(from, to string, back bool, daemons ...string) (all []Candidate) {
	for _, daemon := range daemons {
		all = append(all, Candidate{Change: Change{daemon, ParseVersion(from), ParseVersion(to), back}})
	}
	return all
}

// summary writes a plan in short.
func (p Plan) summary() string {
	var all []string
	for _, c := range p.Changes {
		all = append(all, fmt.Sprintf("%s to %s", c.Daemon, c.To))
	}
	for _, c := range p.Resting {
		all = append(all, c.Daemon+" rests")
	}
	for prefix, texts := range map[string][]string{"later ": p.Later, "problem ": p.Problems, "note ": p.Notes} {
		for _, text := range texts {
			all = append(all, prefix+text)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestDecidePlan(t *testing.T) {
	const api, agent = plan.APIServer, Nodeagent
	three := []Member{{Machine: "a", Counts: true, Self: true}, {Machine: "b", Counts: true},
		{Machine: "c", Counts: true}}
	broken := slices.Clone(three)
	broken[2].Fault = "no route"
	first := Fleet{Own: own("v1.1.0"), APIServers: peers("b v1.1.0", "c v1.1.0"), Agents: peers("a v1.1.0", "w v1.1.0")}
	last := Fleet{Own: own("v1.1.0"), APIServers: peers("b v1.2.0", "c v1.2.0"), Agents: peers("a v1.1.0", "w v1.1.0")}
	back := Fleet{Own: own("v1.2.0"), Agents: peers("a v1.2.0")}
	resting := func(c []Candidate) []Candidate { c[0].Rests = true; return c }
	begun := func(c []Candidate) []Candidate { c[0].Begun = true; return c }
	faulty := func(c []Candidate) []Candidate { c[0].Fault = "there is no program"; return c }
	const older = "nodeagent: the apiserver of b is of v1.1.0, and no daemon may be newer: keel upgrade apiserver " +
		"there first"
	const olderStill = "nodeagent: the apiserver of c is of v1.1.0, and no daemon may be newer: keel upgrade " +
		"apiserver there first"
	const away = "note the API is away for some seconds, since no other machine has it: clients that try again " +
		"notice no more, and Pods go on"
	const majority = "without this machine the store had no majority, since no apiserver answers as ready on c (no " +
		"route): bring it back first (keel join there), or take out what does not come back by keel store remove-member"
	for name, row := range map[string]struct {
		in   PlanInput
		want []string
	}{
		"the first of three": {PlanInput{Candidates: candidates("v1.1.0", "v1.2.0", false, agent, plan.PodGC, api),
			Fleet: first, Members: three}, []string{"apiserver to v1.2.0", "later " + older, "later " + olderStill,
			"note the API stays on b, c", "podgc to v1.2.0"}},
		"the last of three": {PlanInput{Candidates: candidates("v1.1.0", "v1.2.0", false, agent, api), Fleet: last,
			Members: three}, []string{"apiserver to v1.2.0", "nodeagent to v1.2.0", "note the API stays on b, c"}},
		"the first again": {PlanInput{Candidates: resting(candidates("v1.1.0", "v1.2.0", false, api, agent)),
			Fleet: Fleet{Own: own("v1.2.0"), APIServers: first.APIServers}, Members: three},
			[]string{"apiserver rests", "later " + older, "later " + olderStill}},
		"the nodeagent alone, too early": {PlanInput{Asked: []string{agent}, Fleet: Fleet{Own: own("v1.2.0"),
			APIServers: peers("b v1.1.0")}, Candidates: candidates("v1.1.0", "v1.2.0", false, agent)},
			[]string{"problem " + older}},
		"a worker, too early": {PlanInput{Fleet: Fleet{APIServers: peers("b v1.1.0")}, Candidates: candidates("v1.1.0",
			"v1.2.0", false, agent)}, []string{"problem " + older}},
		"a worker": {PlanInput{Fleet: Fleet{APIServers: peers("b v1.2.0")}, Candidates: candidates("v1.1.0", "v1.2.0",
			false, agent)}, []string{"nodeagent to v1.2.0"}},
		"alone": {PlanInput{Fleet: Fleet{Own: own("v1.1.0"), Agents: peers("a v1.1.0")}, Node: "a",
			Candidates: candidates("v1.1.0", "v1.2.0", false, api, agent)},
			[]string{"apiserver to v1.2.0", "nodeagent to v1.2.0", away}},
		"back": {PlanInput{Back: true, Fleet: back, Node: "a", Candidates: candidates("v1.2.0", "v1.1.0", true, api,
			agent)}, []string{"apiserver to v1.1.0", "nodeagent to v1.1.0", away}},
		"the apiserver alone goes back": {PlanInput{Back: true, Asked: []string{api}, Fleet: back, Node: "a",
			Candidates: candidates("v1.2.0", "v1.1.0", true, api)}, []string{"problem apiserver: the nodeagent of a " +
			"is of v1.2.0, and no node may be newer than an apiserver: keel upgrade --rollback nodeagent there first"}},
		"another machine is missing": {PlanInput{Asked: []string{api}, Fleet: first, Members: broken,
			Candidates: candidates("v1.1.0", "v1.2.0", false, api)}, []string{"apiserver to v1.2.0", "problem " +
			majority + "; --force goes on all the same"}},
		"another machine is missing, by force": {PlanInput{Asked: []string{api}, Fleet: first, Members: broken,
			Force: true, Candidates: candidates("v1.1.0", "v1.2.0", false, api)}, []string{"apiserver to v1.2.0",
			"note " + majority}},
		"a nodeagent needs no majority": {PlanInput{Asked: []string{agent}, Fleet: Fleet{Own: own("v1.2.0")},
			Members: broken, Candidates: candidates("v1.1.0", "v1.2.0", false, agent)},
			[]string{"nodeagent to v1.2.0"}},
		"the mesh does not answer": {PlanInput{Asked: []string{agent}, Fault: "it does not answer",
			Candidates: candidates("v1.1.0", "v1.2.0", false, agent)}, []string{"nodeagent to v1.2.0", "problem it " +
			"does not answer; --force goes on all the same"}},
		"the mesh need not answer": {PlanInput{Asked: []string{agent}, Fault: "it does not answer",
			Candidates: resting(candidates("v1.1.0", "v1.2.0", false, agent))}, []string{"nodeagent rests"}},
		"what has begun comes to an end": {PlanInput{Asked: []string{agent}, Fault: "it does not answer",
			Candidates: begun(candidates("v1.1.0", "v1.9.0", false, agent))}, []string{"nodeagent to v1.9.0"}},
		"no program": {PlanInput{Fleet: back, Candidates: faulty(candidates("v1.1.0", "v1.2.0", false, agent))},
			[]string{"problem there is no program"}},
		"commits say once that they have no number": {PlanInput{Fleet: Fleet{Own: own("abc1234")},
			Candidates: candidates("abc1234", "def5678", false, plan.Scheduler, plan.PodGC, api)},
			[]string{"apiserver to def5678", away, "note keel goes on without knowing whether def5678 or abc1234 is " +
				"newer: not both have a number", "podgc to def5678", "scheduler to def5678"}},
	} {
		got := DecidePlan(row.in).summary()
		slices.Sort(row.want)
		if want := strings.Join(row.want, "\n"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// An apiserver is replaced before what asks it, and goes back after it.
func TestPlanInItsOrder(t *testing.T) {
	for back, want := range map[bool][]string{false: Daemons, true: {Nodeagent, plan.PodGC, plan.WorkloadControllers,
		plan.Scheduler, plan.APIServer}} {
		all := candidates("v1.1.0", "v1.1.1", back, Nodeagent, plan.Scheduler, plan.APIServer, plan.PodGC,
			plan.WorkloadControllers)
		var got []string
		in := PlanInput{Back: back, Candidates: all, Fleet: Fleet{Own: own("v1.1.0")}}
		for _, change := range DecidePlan(in).Changes {
			got = append(got, change.Daemon)
		}
		if !slices.Equal(got, want) {
			t.Errorf("back %t: %v, want %v", back, got, want)
		}
	}
}
