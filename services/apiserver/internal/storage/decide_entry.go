package storage

import (
	"slices"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
)

// entry is the next step of a member that is to become part of a cluster, with nothing in its store.
type entry struct {
	// remove is the member of this URL that was before, and whose log is gone; 0 without one.
	remove types.ID
	// add tells that the cluster is to have a member of this URL.
	add bool
	// cluster are the peer URLs of all members by their names, once the member may begin.
	cluster types.URLsMap
}

// decideEntry looks for the member of a URL among those of the cluster. One that this start has added itself may begin.
// Any other lost its log, as an earlier start was cut off or an operator has removed the folder: a member must never
// forget what it has acknowledged, so another one takes its place.
func decideEntry(members []*membership.Member, own, name string, added types.ID) entry {
	at := slices.IndexFunc(members, func(m *membership.Member) bool { return slices.Contains(m.PeerURLs, own) })
	switch {
	case at < 0:
		return entry{add: true}
	case members[at].ID != added:
		return entry{remove: members[at].ID}
	}
	cluster := types.URLsMap{}
	for i, m := range members {
		urls, err := types.NewURLs(m.PeerURLs)
		if err != nil {
			continue // no member without a URL was ever added
		}
		if i == at {
			cluster[name] = urls
		} else {
			cluster[m.ID.String()] = urls
		}
	}
	return entry{cluster: cluster}
}
