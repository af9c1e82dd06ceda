package backup

import (
	"fmt"
	"time"

	"keelson.dev/services/apiserver/internal/storage/storedir"
)

// revisionGap is by how much the revision of a restored store is beyond what clients may have seen, as etcd recommends.
const revisionGap = 1_000_000_000

// found is what a restore found before it changes anything.
type found struct {
	paths storedir.Paths
	// snapshot is what is to be restored, and its file.
	snapshot Content
	file     string
	// identity is the mesh that the directory is of; empty: it is of none yet.
	identity string
	// moved says to which cluster the store was moved; nil: it was not.
	moved *storedir.Moved
	// store is whether there is one, revision its last one as far as that can be read.
	store    bool
	revision int64
	// replace and otherMesh are the user's consent to what they say.
	replace, otherMesh bool
	now                time.Time
}

// restorePlan is what a restore does.
type restorePlan struct {
	// bump is added to the snapshot's revision.
	bump uint64
	// aside: the store that is there is kept under another name. forget: the directory becomes of the snapshot's mesh.
	aside, forget bool
}

// decideRestore says how to restore, or in one sentence why not.
func decideRestore(f found) (restorePlan, error) {
	other := f.identity != "" && f.snapshot.Identity != "" && f.identity != f.snapshot.Identity
	switch {
	case f.moved != nil:
		return restorePlan{}, fmt.Errorf("the mesh's store is the etcd cluster at %s, as %s says: restore the "+
			"snapshot there, or first bring the store back, by keel store migrate --to embedded", f.moved.At(),
			f.paths.Moved)
	case f.store && !f.replace:
		return restorePlan{}, fmt.Errorf("%s holds a store already: with --replace it is kept under another name, and "+
			"%s takes its place", f.paths.Store, f.file)
	case other && !f.otherMesh:
		return restorePlan{}, fmt.Errorf("%s is of the mesh %s, but %s says %s: with --other-mesh the directory "+
			"becomes that mesh's", f.file, f.snapshot.Identity, f.paths.Identity, f.identity)
	}
	return restorePlan{bump: bump(f.snapshot.Revision, f.revision, f.now), aside: f.store, forget: other}, nil
}

// bump is by how much the snapshot's revision rises: beyond all that a client may have seen of the store that was
// there, so that no watch goes on from a revision that means something else now. A store that was restored before and
// is gone, or cannot be read, may have been beyond the gap; the milliseconds since 1970 are beyond every revision of a
// store with less than a thousand writes in each second of its life.
func bump(snapshot, before int64, now time.Time) uint64 {
	next := max(snapshot, before) + revisionGap
	return uint64(max(next, now.UnixMilli()) - snapshot)
}
