package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/coreos/go-semver/semver"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"

	"keelson.dev/services/apiserver/internal/storage"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

const (
	// sector divides the length of a database; etcd adds the checksum behind it.
	sector = 512
	// pageKeys is how many keys are read from an open store at a time.
	pageKeys = 500
)

// Inspect reads a snapshot whole. The error is one sentence about the file.
func Inspect(path string) (Content, error) {
	if err := checkSum(path); err != nil {
		return Content{}, err
	}
	return inspectDatabase(path)
}

// checkSum compares the file with the checksum at its end.
func checkSum(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file", path)
	case info.Size() <= sha256.Size || info.Size()%sector != sha256.Size:
		return fmt.Errorf("%s has no checksum at its end: it is cut off, or no snapshot of a store", path)
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, file, info.Size()-sha256.Size); err != nil {
		return fmt.Errorf("%s cannot be read: %w", path, err)
	}
	want, err := io.ReadAll(file)
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", path, err)
	}
	if !bytes.Equal(want, sum.Sum(nil)) {
		return fmt.Errorf("%s is damaged: it does not have the checksum that stands at its end", path)
	}
	return nil
}

// inspectDatabase reads the database of a snapshot, or of a store that no process has open.
func inspectDatabase(path string) (c Content, err error) {
	err = storedir.View(path, func(tx *bbolt.Tx) error {
		c, err = read(tx)
		return err
	})
	if err != nil {
		return Content{}, fmt.Errorf("%s cannot be read (%s)", path, storedir.OneLine(err.Error()))
	}
	return c, nil
}

func read(tx *bbolt.Tx) (Content, error) {
	keys := tx.Bucket(schema.Key.Name())
	if keys == nil || tx.Bucket(schema.Meta.Name()) == nil {
		return Content{}, errors.New("it is no store of etcd")
	}
	form := schema.ReadStorageVersionFromSnapshot(tx)
	if err := checkForm(form, *semver.New(version.Version)); err != nil {
		return Content{}, err
	}
	live, identity, revision := map[string]digest{}, "", int64(0)
	// The bucket is ordered by revision, so what comes later counts.
	if err := keys.ForEach(func(at, value []byte) error {
		revision = mvcc.BytesToRev(at).Main
		if len(value) == 0 {
			return nil // the mark of a restore, by which the revision rose
		}
		var kv mvccpb.KeyValue
		if err := proto.Unmarshal(value, &kv); err != nil {
			return fmt.Errorf("revision %d: %w", revision, err)
		}
		if string(kv.Key) == storage.IdentityKey {
			identity = string(kv.Value)
		}
		if mvcc.IsTombstone(at) {
			delete(live, string(kv.Key))
		} else {
			live[string(kv.Key)] = sha256.Sum256(kv.Value)
		}
		return nil
	}); err != nil {
		return Content{}, err
	}
	c := summarize(live)
	c.Revision, c.Identity = revision, identity
	if form != nil {
		c.Version = form.String()
	}
	return c, nil
}

// checkForm refuses what a later etcd wrote, of which this one knows nothing.
func checkForm(form *semver.Version, own semver.Version) error {
	if form != nil && (form.Major != own.Major || form.Minor > own.Minor) {
		return fmt.Errorf("etcd %d.%d wrote it, and this program reads up to %d.%d", form.Major, form.Minor, own.Major,
			own.Minor)
	}
	return nil
}

// readOpen reads what a store holds that is open, at its last revision.
func readOpen(ctx context.Context, kv clientv3.KV) (Content, error) {
	h, err := hold(ctx, kv, 0, nil)
	if err != nil {
		return Content{}, err
	}
	return h.content(), nil
}

// hold reads all that a store holds that is open, at a revision, or at its last one if that is 0. Each key is handed to
// visit, if that is not nil.
func hold(ctx context.Context, kv clientv3.KV, revision int64, visit func(*mvccpb.KeyValue) error) (holding, error) {
	h := holding{entries: map[string]entry{}, revision: revision}
	for from, more := "\x00", true; more; {
		page, err := kv.Get(ctx, from, clientv3.WithFromKey(), clientv3.WithLimit(pageKeys),
			clientv3.WithRev(h.revision))
		if err != nil {
			return h, fmt.Errorf("reading the store: %w", err)
		}
		if h.revision == 0 {
			h.revision = page.Header.Revision
		}
		for _, found := range page.Kvs {
			h.entries[string(found.Key)] = entry{value: sha256.Sum256(found.Value), lease: found.Lease,
				revision: found.ModRevision}
			if string(found.Key) == storage.IdentityKey {
				h.identity = string(found.Value)
			}
			from = string(found.Key) + "\x00"
			if visit == nil {
				continue
			}
			if err := visit(found); err != nil {
				return h, err
			}
		}
		more = page.More
	}
	return h, nil
}
