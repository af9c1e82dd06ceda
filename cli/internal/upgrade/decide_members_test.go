package upgrade

import (
	"strings"
	"testing"
)

// Three machines go on without one of them, two and one do not, and nobody is taken away while another one is missing.
func TestCheckMembers(t *testing.T) {
	self := Member{Machine: "a", Counts: true, Self: true}
	b, c, d, e := Member{Machine: "b", Counts: true}, Member{Machine: "c", Counts: true},
		Member{Machine: "d", Counts: true}, Member{Machine: "e", Counts: true}
	down := func(m Member) Member { m.Fault = "no route"; return m }
	late := func(m Member) Member { m.Counts = false; return m }
	const without = "without this machine the store had no majority, since no apiserver answers as ready on "
	for name, row := range map[string]struct {
		members         []Member
		problem, notice string
	}{
		"a store of its own":     {nil, "", "the API is away for some seconds, since no other machine has it"},
		"alone":                  {[]Member{self}, "", "the API is away for some seconds, since no other"},
		"one that catches up":    {[]Member{self, late(b)}, "", "the API is away for some seconds, since no other"},
		"two":                    {[]Member{b, self}, "", "the API is away for some seconds, on b too: of 2 machines"},
		"two, one is down":       {[]Member{self, down(b)}, without + "b (no route)", ""},
		"three":                  {[]Member{self, b, c}, "", "the API stays on b, c"},
		"three, one is down":     {[]Member{self, b, down(c)}, without + "c (no route)", ""},
		"three, one catches up":  {[]Member{self, b, late(c)}, "", "the API is away for some seconds, on b too: of 2"},
		"four":                   {[]Member{self, b, c, d}, "", "the API stays on b, c, d"},
		"four, one is down":      {[]Member{self, b, c, down(d)}, without + "d (no route)", ""},
		"five, one is down":      {[]Member{self, b, c, d, down(e)}, "", "the API stays on b, c, d"},
		"five, two are down":     {[]Member{self, b, c, down(d), down(e)}, without + "d (no route), e (no route)", ""},
		"its own is not ready":   {[]Member{down(self), b, c}, "", "the API stays on b, c"},
		"a learner that is down": {[]Member{self, b, c, late(down(d))}, "", "the API stays on b, c"},
	} {
		problem, notice := CheckMembers(row.members)
		if (problem == "") != (row.problem == "") || !strings.HasPrefix(problem, row.problem) ||
			(notice == "") != (row.notice == "") || !strings.HasPrefix(notice, row.notice) {
			t.Errorf("%s: %q, %q, want %q, %q", name, problem, notice, row.problem, row.notice)
		}
		if problem != "" && !strings.Contains(problem, "bring it back first (keel join there)") {
			t.Errorf("%s: it does not say what to do: %s", name, problem)
		}
	}
}

func TestCheckRoom(t *testing.T) {
	const mib = 1 << 20
	for name, row := range map[string]struct {
		copies []Copy
		want   []string
	}{
		"nothing": {},
		"enough":  {copies: []Copy{{1, "/opt", 90 * mib, 154 * mib}}},
		"a byte too few": {[]Copy{{1, "/opt", 90 * mib, 154*mib - 1}}, []string{"the disk of /opt has 153 MiB " +
			"left, and the programs need 154 MiB: make room first"}},
		"two disks": {copies: []Copy{{1, "/opt", 90 * mib, 154 * mib}, {2, "/var", 90 * mib, 154 * mib}}},
		"one disk for two": {[]Copy{{1, "/opt", 90 * mib, 200 * mib}, {1, "/var", 90 * mib, 200 * mib}},
			[]string{"the disk of /opt has 200 MiB left, and the programs need 244 MiB: make room first"}},
	} {
		if got := CheckRoom(row.copies); strings.Join(got, "\n") != strings.Join(row.want, "\n") {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

func TestNextMachine(t *testing.T) {
	for name, row := range map[string]struct {
		fleet Fleet
		want  string
	}{
		"alone": {Fleet{}, "Every apiserver and every nodeagent of the mesh is of v1.2.0."},
		"an apiserver before any node": {Fleet{APIServers: peers("b v1.2.0", "c v1.1.0"), Agents: peers("w v1.1.0")},
			"Next: keel upgrade on c, whose apiserver is of v1.1.0."},
		"a node": {Fleet{APIServers: peers("b v1.2.0"), Agents: peers("v v1.2.0", "w v1.1.0")},
			"Next: keel upgrade on w, whose nodeagent is of v1.1.0."},
		"a node of which nothing is known": {Fleet{Agents: peers("w")},
			"Next: keel upgrade on w, whose nodeagent is of an unknown version."},
	} {
		got, complete := NextMachine(row.fleet, ParseVersion("v1.2.0"))
		if got != row.want || complete != strings.HasPrefix(row.want, "Every") {
			t.Errorf("%s: %s, complete %t, want %s", name, got, complete, row.want)
		}
	}
}
