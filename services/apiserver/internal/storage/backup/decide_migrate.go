package backup

import (
	"fmt"

	"keelson.dev/services/apiserver/internal/storage"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

const (
	// raiseLimit is how many revisions of a cluster are made by writes, a few minutes of them.
	raiseLimit = 2_000_000
	// aboveSeen is by how much the revision of the store that takes over is higher than any that clients have seen: a
	// watch that goes on from the last one begins one higher, and must be told that this is compacted.
	aboveSeen = 2
	// backBump is by how much the revision rises when the store becomes an embedded one. It is small, so that writes
	// can make up for it if the store moves to a cluster again.
	backBump = 1000
)

// seen is what a migration finds before it changes anything.
type seen struct {
	paths storedir.Paths
	// store is whether the data directory has a store, identity the mesh that it is of; empty: it does not say.
	store    bool
	identity string
	// moved says to which cluster the store was moved; nil: it was not.
	moved *storedir.Moved
	// servers name the cluster, mark is what it says of itself.
	servers string
	mark    storage.Mark
}

// own reports whether the cluster's mark is of this mesh.
func (s seen) own() bool { return s.mark.Mesh == s.identity }

// elsewhere reports whether the store was moved to another cluster.
func (s seen) elsewhere() bool { return s.moved != nil && s.moved.Move != s.mark.Move }

// foreign is the error about the mark of another mesh; nil: there is none.
func (s seen) foreign() error {
	if s.mark.Kind == "" || s.own() {
		return nil
	}
	return fmt.Errorf("the etcd cluster at %s is of the mesh %s, by its key %s: give another cluster", s.servers,
		s.mark.Mesh, storage.MigrationKey)
}

// decideToEtcd says whether the store was moved before, so that only the rest is to be done, or in one sentence why it
// cannot be moved.
func decideToEtcd(s seen) (finish bool, err error) {
	if err := s.foreign(); err != nil {
		return false, err
	}
	switch {
	case s.elsewhere():
		return false, fmt.Errorf("the store was moved to the etcd cluster at %s, as %s says, and %s is another: keel "+
			"store migrate --to embedded first brings it back", s.moved.At(), s.paths.Moved, s.servers)
	case s.moved != nil && s.mark.Kind == storage.Left:
		return false, fmt.Errorf("the store is on its way back from %s: keel store migrate --to embedded, run again, "+
			"finishes that", s.servers)
	case s.moved != nil:
		return true, nil
	case !s.store:
		return false, fmt.Errorf("%s holds no store: start the mesh once", s.paths.Store)
	case s.mark.Kind == storage.Left:
		return false, fmt.Errorf("the etcd cluster at %s still holds the store that was moved away from it: give an "+
			"empty cluster", s.servers)
	}
	return false, nil
}

// decideTarget says in one sentence why a cluster is no place for the store; nil: it is one. Keys with a lease count
// only beside others: those of a store that was restored end while nobody uses it.
func decideTarget(s seen, source, target holding) error {
	if s.mark.Kind == storage.Arriving || len(target.entries) == 0 {
		return nil
	}
	d := compare(source.lasting(), target.lasting())
	switch {
	case len(d.wrong) == 0:
		return nil
	case target.identity != "" && target.identity == source.identity:
		return fmt.Errorf("the etcd cluster at %s holds this mesh as it was at another time, with %d other keys, %q "+
			"among them: start it from a snapshot that is taken once the apiserver is stopped, or give an empty "+
			"cluster", s.servers, len(d.wrong), d.wrong[0])
	}
	return fmt.Errorf("the etcd cluster at %s is not empty: it holds %d keys, %q among them: give an empty cluster, "+
		"or one that was started from a snapshot of this store", s.servers, len(target.entries), firstKey(target))
}

// firstKey is one of the keys of a holding, always the same.
func firstKey(h holding) string {
	first := ""
	for key := range h.entries {
		if first == "" || key < first {
			first = key
		}
	}
	return first
}

// decideRaise says how many revisions are missing in the cluster, so that all that is written to it has a higher
// revision than what clients have seen; or, where these are too many to be made, what to do about it.
func decideRaise(source, target int64, servers string) (int64, error) {
	missing := max(source+aboveSeen-target, 0)
	if missing > raiseLimit {
		return 0, fmt.Errorf("the etcd cluster at %s is at revision %d and clients have seen %d, and at most %d "+
			"revisions are made up for: save the store by keel store snapshot FILE, start the cluster anew from it, "+
			"by etcdutl snapshot restore FILE --bump-revision %d --mark-compacted on each member, and run this again",
			servers, target, source, raiseLimit, backBump)
	}
	return missing, nil
}

// backBy is by how much the revision of a cluster's snapshot rises, whose last revisions may be compacted deletes, so
// that the cluster is at a higher one by now.
func backBy(snapshot, cluster int64) int64 { return max(cluster-snapshot, 0) + backBump }

// back is what comes before the store is moved back.
type back struct {
	// installed: it was moved back before, so that only the rest is to be done.
	installed bool
	// forward: its move to the cluster is to be finished first. release: the cluster's mark is to be removed first.
	forward, release bool
}

// decideToEmbedded says how to move the store back, or in one sentence why not. A cluster is marked as left only while
// the data directory holds no store: one that is there beside the mark has come from the cluster.
func decideToEmbedded(s seen) (back, error) {
	if err := s.foreign(); err != nil {
		return back{}, err
	}
	switch left := s.mark.Kind == storage.Left; {
	case s.elsewhere():
		return back{}, fmt.Errorf("the store was moved to the etcd cluster at %s, as %s says, and %s is another: give "+
			"the servers of the first", s.moved.At(), s.paths.Moved, s.servers)
	case left && s.store:
		return back{installed: true}, nil
	case left:
		return back{release: true}, nil
	case s.store && s.moved != nil:
		return back{forward: true}, nil
	case s.store:
		return back{}, fmt.Errorf("%s holds a store, which was not moved to %s: it is the mesh's store, or move it "+
			"away first", s.paths.Store, s.servers)
	case s.mark.Kind == storage.Arriving && s.moved == nil:
		return back{}, fmt.Errorf("the etcd cluster at %s holds only a part of a store, and %s is missing, from which "+
			"it came: put it back, and run keel store migrate --to etcd", s.servers, s.paths.Store)
	case s.mark.Kind == storage.Arriving:
		return back{forward: true}, nil
	}
	return back{}, nil
}
