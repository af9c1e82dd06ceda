package upgrade

import (
	"slices"
	"strings"
	"testing"

	"keelson.dev/cli/internal/plan"
)

func peers(all ...string) (peers []Peer) {
	for _, text := range all {
		machine, version, _ := strings.Cut(text, " ")
		peers = append(peers, Peer{machine, ParseVersion(version)})
	}
	return peers
}

func own(text string) *Version {
	version := ParseVersion(text)
	return &version
}

// Each refusal is one sentence that ends with what to do; all others are allowed.
func TestCheckVersions(t *testing.T) {
	const api, agent = plan.APIServer, Nodeagent
	for name, row := range map[string]struct {
		daemon, from, to string
		back             bool
		fleet            Fleet
		// want are the objections, "later " before those that other machines mend; unknown is what cannot be told.
		want    []string
		unknown string
	}{
		"a patch":               {daemon: api, from: "v1.1.0", to: "v1.1.1"},
		"a minor version":       {daemon: api, from: "v1.1.9", to: "v1.2.0"},
		"a later commit":        {daemon: api, from: "v1.1.0-2-gabc1234", to: "v1.1.0-9-gabc1235"},
		"the same, built again": {daemon: api, from: "v1.1.0", to: "v1.1.0"},
		"two minor versions": {daemon: api, from: "v1.1.0", to: "v1.3.0", want: []string{"apiserver: v1.1.0 and " +
			"v1.3.0 are 2 minor versions apart, and one at a time is possible: take the one between first"}},
		"a major version": {daemon: api, from: "v0.9.0", to: "v1.0.0", want: []string{"apiserver: from v0.9.0 to " +
			"v1.0.0 the major version changes, and this keel knows no way: see what is said about v1.0.0"}},
		"an older one": {daemon: agent, from: "v1.1.1", to: "v1.1.0", want: []string{"nodeagent: v1.1.0 is older " +
			"than v1.1.1, which runs: keel upgrade --rollback goes back to what ran before"}},
		"an older commit": {daemon: agent, from: "v1.1.0-9-gabc1234", to: "v1.1.0-2-gabc1235", want: []string{
			"nodeagent: v1.1.0-2-gabc1235 is older than v1.1.0-9-gabc1234, which runs: keel upgrade --rollback goes " +
				"back to what ran before"}},
		"back": {daemon: api, from: "v1.2.0", to: "v1.1.0", back: true},
		"back far": {daemon: api, from: "v1.3.0", to: "v1.1.0", back: true, want: []string{"apiserver: v1.3.0 and " +
			"v1.1.0 are 2 minor versions apart, and one at a time is possible: take the one between first"}},

		"beside an apiserver of a minor version before": {daemon: api, from: "v1.1.0", to: "v1.2.0",
			fleet: Fleet{APIServers: peers("b v1.1.0", "c v1.2.0", "d v1.3.0")}},
		"beside an older apiserver": {daemon: api, from: "v1.1.0", to: "v1.2.0",
			fleet: Fleet{APIServers: peers("b v1.0.7", "c v1.1.0")}, want: []string{"later apiserver: the apiserver " +
				"of b is of v1.0.7, more than a minor version apart from v1.2.0: keel upgrade apiserver there first"}},
		"back, beside a newer apiserver": {daemon: api, from: "v1.2.0", to: "v1.1.0", back: true,
			fleet: Fleet{APIServers: peers("b v1.3.0")}, want: []string{"later apiserver: the apiserver of b is of " +
				"v1.3.0, more than a minor version apart from v1.1.0: keel upgrade --rollback apiserver there first"}},
		"for nodes of the present version": {daemon: api, from: "v1.1.0", to: "v1.2.0",
			fleet: Fleet{Agents: peers("w1 v1.1.0", "w2 v1.2.0")}},
		"for a node that is too old": {daemon: api, from: "v1.1.0", to: "v1.2.0",
			fleet: Fleet{Agents: peers("w1 v1.0.0", "w2 v1.1.0")}, want: []string{"later apiserver: the nodeagent of " +
				"w1 is of v1.0.0, which is too old for an apiserver of v1.2.0: keel upgrade nodeagent there first"}},
		"back, for a newer node": {daemon: api, from: "v1.2.0", to: "v1.1.0", back: true,
			fleet: Fleet{Agents: peers("w1 v1.2.0")}, want: []string{"later apiserver: the nodeagent of w1 is of " +
				"v1.2.0, and no node may be newer than an apiserver: keel upgrade --rollback nodeagent there first"}},

		"a node after its apiserver": {daemon: agent, from: "v1.1.0", to: "v1.2.0", fleet: Fleet{Own: own("v1.2.0"),
			APIServers: peers("b v1.2.1")}},
		"a node with a patch before its apiserver": {daemon: agent, from: "v1.1.0", to: "v1.1.1",
			fleet: Fleet{Own: own("v1.1.0")}},
		"a node before the apiserver of its machine": {daemon: agent, from: "v1.1.0", to: "v1.2.0",
			fleet: Fleet{Own: own("v1.1.0")}, want: []string{"later nodeagent: the apiserver of this machine is of " +
				"v1.1.0, and no daemon may be newer: keel upgrade apiserver there first"}},
		"a node before an apiserver elsewhere": {daemon: agent, from: "v1.1.0", to: "v1.2.0", fleet: Fleet{
			Own: own("v1.2.0"), APIServers: peers("b v1.1.0", "c v1.2.0")}, want: []string{"later nodeagent: the " +
			"apiserver of b is of v1.1.0, and no daemon may be newer: keel upgrade apiserver there first"}},
		"a worker before an apiserver": {daemon: agent, from: "v1.1.0", to: "v1.2.0", fleet: Fleet{
			APIServers: peers("b v1.1.0")}, want: []string{"later nodeagent: the apiserver of b is of v1.1.0, and no " +
			"daemon may be newer: keel upgrade apiserver there first"}},
		"a node that goes back far behind": {daemon: agent, from: "v1.2.0", to: "v1.1.0", back: true, fleet: Fleet{
			APIServers: peers("b v1.3.0")}, want: []string{"later nodeagent: the apiserver of b is of v1.3.0, for " +
			"which v1.1.0 is too old: keel upgrade --rollback apiserver there first"}},
		"a scheduler beside older apiservers elsewhere": {daemon: plan.Scheduler, from: "v1.1.0", to: "v1.2.0",
			fleet: Fleet{Own: own("v1.2.0"), APIServers: peers("b v1.1.0")}},
		"a scheduler before its apiserver": {daemon: plan.Scheduler, from: "v1.1.0", to: "v1.2.0",
			fleet: Fleet{Own: own("v1.1.0")}, want: []string{"later scheduler: the apiserver of this machine is of " +
				"v1.1.0, and no daemon may be newer: keel upgrade apiserver there first"}},

		"commits": {daemon: api, from: "abc1234", to: "def5678", fleet: Fleet{APIServers: peers("b abc1234")},
			unknown: "keel goes on without knowing whether def5678 or abc1234 is newer: not both have a number"},
		"a commit, everywhere": {daemon: agent, from: "def5678", to: "def5678", fleet: Fleet{Own: own("def5678"),
			APIServers: peers("b def5678")}},
		"a release after a commit": {daemon: api, from: "abc1234", to: "v1.2.0", fleet: Fleet{
			APIServers: peers("b v1.0.0")}, want: []string{"later apiserver: the apiserver of b is of v1.0.0, more " +
			"than a minor version apart from v1.2.0: keel upgrade apiserver there first"},
			unknown: "keel goes on without knowing whether v1.2.0 or abc1234 is newer: not both have a number"},
		"a node that does not say its version": {daemon: api, from: "v1.1.0", to: "v1.2.0",
			fleet: Fleet{Agents: peers("w1")}, unknown: "keel goes on without knowing whether v1.2.0 or an unknown " +
				"version is newer: not both have a number"},
	} {
		objections, unknown := CheckVersions(Change{row.daemon, ParseVersion(row.from), ParseVersion(row.to), row.back},
			row.fleet)
		var got []string
		for _, o := range objections {
			got = append(got, map[bool]string{true: "later "}[o.Later]+o.Text)
		}
		if !slices.Equal(got, row.want) || unknown != row.unknown {
			t.Errorf("%s:\n%q, %q\nwant\n%q, %q", name, got, unknown, row.want, row.unknown)
		}
	}
}
