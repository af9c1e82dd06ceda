package upgrade

import (
	"fmt"

	"keelson.dev/cli/internal/plan"
)

// Nodeagent is the daemon of a node, as users name it.
const Nodeagent = "nodeagent"

// behind is by how many minor versions a daemon may be older than an apiserver, and an apiserver than another one.
const behind = 1

// Peer is a daemon on some machine of the mesh.
type Peer struct {
	// Machine is the name of its node, or its address.
	Machine string
	Version Version
}

// Fleet is what a mesh runs.
type Fleet struct {
	// Own is the version of this machine's apiserver; nil on a worker, which has none.
	Own *Version
	// APIServers are those of the other machines.
	APIServers []Peer
	// Agents are those of all nodes; a worker does not see them.
	Agents []Peer
}

// Change is the replacement of one daemon of this machine.
type Change struct {
	Daemon   string
	From, To Version
	// Back is set if an older version is asked for.
	Back bool
}

// Objection is a reason against a change, in a sentence that says what to do.
type Objection struct {
	Text string
	// Later is set if the change is right once other machines have had theirs.
	Later bool
}

// CheckVersions returns the objections to a change by the versions of the mesh. Unknown is a sentence if one of them
// cannot be compared.
func CheckVersions(change Change, fleet Fleet) (objections []Objection, unknown string) {
	s := &skew{Change: change}
	s.checkStep()
	if change.Daemon == plan.APIServer {
		for _, other := range fleet.APIServers {
			s.checkBeside(other)
		}
		for _, agent := range fleet.Agents {
			s.checkServed(agent)
		}
		return s.objections, s.unknown
	}
	if fleet.Own != nil {
		s.checkClient("this machine", *fleet.Own)
	}
	if change.Daemon == Nodeagent { // which every apiserver asks
		for _, other := range fleet.APIServers {
			s.checkClient(other.Machine, other.Version)
		}
	}
	return s.objections, s.unknown
}

// skew collects what is found out about a change.
type skew struct {
	Change
	objections []Objection
	unknown    string
}

func (s *skew) object(later bool, format string, args ...any) {
	s.objections = append(s.objections, Objection{Text: s.Daemon + ": " + fmt.Sprintf(format, args...), Later: later})
}

// minors returns by how many minor versions the version to come is newer than another one. It notes a pair that cannot
// be compared.
func (s *skew) minors(than Version) (minors int, known bool) {
	switch {
	case s.To.text == than.text: // a commit, however it is called
		return 0, true
	case s.To.Numbered() && than.Numbered():
		return s.To.minors(than), true
	}
	if s.unknown == "" {
		s.unknown = fmt.Sprintf("keel goes on without knowing whether %s or %s is newer: not both have a number", s.To,
			than)
	}
	return 0, false
}

// checkStep compares the version to come with the present one.
func (s *skew) checkStep() {
	minors, known := s.minors(s.From)
	switch apart := max(minors, -minors); {
	case !known || s.To.text == s.From.text:
	case apart > otherMajor/2:
		s.object(false, "from %s to %s the major version changes, and this keel knows no way: see what is said about "+
			"%s", s.From, s.To, s.To)
	case apart > behind:
		s.object(false, "%s and %s are %d minor versions apart, and one at a time is possible: take the one between "+
			"first", s.From, s.To, apart)
	case s.To.older(s.From) && !s.Back:
		s.object(false, "%s is older than %s, which runs: keel upgrade --rollback goes back to what ran before", s.To,
			s.From)
	}
}

// checkBeside compares the version to come of an apiserver with that of another one.
func (s *skew) checkBeside(other Peer) {
	minors, _ := s.minors(other.Version)
	if max(minors, -minors) <= behind {
		return
	}
	s.object(true, "the apiserver of %s is of %s, more than a minor version apart from %s: %s there first",
		other.Machine, other.Version, s.To, command(plan.APIServer, minors < 0))
}

// checkServed compares the version to come of an apiserver with that of a node.
func (s *skew) checkServed(agent Peer) {
	switch minors, _ := s.minors(agent.Version); {
	case minors > behind:
		s.object(true, "the nodeagent of %s is of %s, which is too old for an apiserver of %s: %s there first",
			agent.Machine, agent.Version, s.To, command(Nodeagent, false))
	case minors < 0:
		s.object(true, "the nodeagent of %s is of %s, and no node may be newer than an apiserver: %s there first",
			agent.Machine, agent.Version, command(Nodeagent, true))
	}
}

// checkClient compares the version to come of a daemon with that of an apiserver.
func (s *skew) checkClient(machine string, server Version) {
	switch minors, _ := s.minors(server); {
	case minors > 0:
		s.object(true, "the apiserver of %s is of %s, and no daemon may be newer: %s there first", machine, server,
			command(plan.APIServer, false))
	case minors < -behind:
		s.object(true, "the apiserver of %s is of %s, for which %s is too old: %s there first", machine, server, s.To,
			command(plan.APIServer, true))
	}
}

// command returns what replaces a daemon.
func command(daemon string, back bool) string {
	if back {
		return "keel upgrade --rollback " + daemon
	}
	return "keel upgrade " + daemon
}
