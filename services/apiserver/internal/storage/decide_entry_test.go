package storage

import (
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
)

func TestDecideEntry(t *testing.T) {
	const own = "https://192.0.2.2:2380"
	at := func(id types.ID, url string, learner bool) *membership.Member {
		return &membership.Member{ID: id, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{url},
			IsLearner: learner}}
	}
	first := at(1, "https://192.0.2.1:2380", false)
	for name, row := range map[string]struct {
		members []*membership.Member
		added   types.ID
		remove  types.ID
		add     bool
		cluster string
	}{
		"nobody knows of it": {members: []*membership.Member{first}, add: true},
		"added a moment ago": {[]*membership.Member{first, at(2, own, true)}, 2, 0, false,
			"1=https://192.0.2.1:2380,own=" + own},
		"added by a start that was cut off":    {[]*membership.Member{first, at(2, own, true)}, 0, 2, false, ""},
		"one that counts, whose log is gone":   {[]*membership.Member{first, at(2, own, false)}, 0, 2, false, ""},
		"another than the one that was added":  {[]*membership.Member{first, at(3, own, true)}, 2, 3, false, ""},
		"added, and somebody has taken it out": {[]*membership.Member{first}, 2, 0, true, ""},
	} {
		got := decideEntry(row.members, own, "own", row.added)
		if got.remove != row.remove || got.add != row.add || got.cluster.String() != row.cluster {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
