package backup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-semver/semver"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	clientsnapshot "go.etcd.io/etcd/client/v3/snapshot"
	"go.uber.org/zap"

	"keelson.dev/services/apiserver/internal/storage/storedir"
)

// A restored store holds what the snapshot does, object by object, and clients notice that it is another: who watches
// from a revision that he has seen is told that it is compacted, though the store that was there was ahead.
func TestRestore(t *testing.T) {
	file, s := saved(t)
	before := s.content(t)
	seen := s.put(t, "/registry/pods/default/late", "1")
	s.put(t, "/registry/pods/default/p1", "changed")
	s.Close()

	refused(t, 2, "holds a store already: with --replace", "restore", file, "--data-dir", s.dir)
	out := must(t, "restore", file, "--replace", "--data-dir", s.dir)
	_, kept, found := strings.Cut(strings.TrimSpace(out), "the store that was there is kept as ")
	if !found || len(list(t, s.dir)) != 4 { // etcd, the kept one, identity and lock
		t.Fatalf("it said %q, there is %v", out, list(t, s.dir))
	}

	again := open(t, s.dir)
	after := again.content(t)
	if after.Checksum != before.Checksum || after.Keys != before.Keys || after.Identity != before.Identity {
		t.Errorf("restored %+v, it was %+v", after, before)
	}
	if after.Revision < time.Now().Add(-time.Hour).UnixMilli() {
		t.Errorf("the revision is %d", after.Revision)
	}
	for _, from := range []int64{1, seen, seen + 1000} {
		watch := <-again.client.Watch(t.Context(), "/registry/pods/", clientv3.WithPrefix(), clientv3.WithRev(from))
		if !errors.Is(watch.Err(), rpctypes.ErrCompacted) || watch.CompactRevision < after.Revision {
			t.Errorf("a watch from %d: %v, compacted at %d", from, watch.Err(), watch.CompactRevision)
		}
	}
	if at := again.put(t, "/registry/pods/default/new", "1"); at != after.Revision+1 {
		t.Errorf("the first write is %d, after %d", at, after.Revision)
	}
	again.Close()

	// Nothing is lost: the store that was there can be taken back.
	store := storedir.Of(s.dir).Store
	if err := errors.Join(os.Rename(store, s.dir+"-restored"), os.Rename(kept, store)); err != nil {
		t.Fatal(err)
	}
	if back := open(t, s.dir); back.get(t, "/registry/pods/default/late") != "1" {
		t.Error("the old store is not what it was")
	}
}

// A snapshot of a restored store is restored beyond both.
func TestRestoreTwice(t *testing.T) {
	file, s := saved(t)
	s.Close()
	must(t, "restore", file, "--replace", "--data-dir", s.dir)
	again := open(t, s.dir)
	first := again.put(t, "/k", "v")
	again.Close()
	later := restoring{file: file, dataDir: s.dir, replace: true, now: time.Now().Add(time.Second)}
	done, err := later.restore(t.Context())
	if err != nil || done.revision != first+revisionGap {
		t.Fatalf("%+v, %v, want the revision %d", done, err, first+revisionGap)
	}
}

// Keys keep their leases: what had a long time to live stays, what had a short one goes.
func TestRestoreKeepsLeases(t *testing.T) {
	s := open(t, newDir(t))
	for name, seconds := range map[string]int64{"short": 2, "long": 3600} {
		lease, err := s.client.Grant(t.Context(), seconds)
		if err != nil {
			t.Fatal(err)
		}
		s.put(t, name, "v", clientv3.WithLease(lease.ID))
	}
	file := filepath.Join(t.TempDir(), "s")
	must(t, "snapshot", file, "--data-dir", s.dir)
	content, _, err := Verify(file)
	if err != nil || content.Kinds["short"] != 1 {
		t.Skipf("the machine was too slow: %+v, %v", content, err)
	}
	s.Close()
	must(t, "restore", file, "--replace", "--data-dir", s.dir)
	again := open(t, s.dir)
	eventually(t, "the key to go with its lease", func() bool { return again.get(t, "short") == "" })
	got, err := again.client.KV.Get(t.Context(), "long")
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	left, err := again.client.TimeToLive(t.Context(), clientv3.LeaseID(got.Kvs[0].Lease))
	if err != nil || left.GrantedTTL != 3600 || left.TTL < 60 {
		t.Errorf("%+v, %v", left, err)
	}
}

// Into an empty directory, and into one whose store was moved away by hand.
func TestRestoreWhereNoStoreIs(t *testing.T) {
	file, s := saved(t)
	want := s.content(t)
	s.Close()
	moved := s.dir
	if err := os.Rename(filepath.Join(moved, "etcd"), moved+"-old"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{newDir(t), filepath.Join(newDir(t), strings.Repeat("long", 30)), moved} {
		must(t, "restore", file, "--data-dir", dir)
		again := open(t, dir)
		if got := again.content(t); got.Checksum != want.Checksum || got.Identity != want.Identity {
			t.Errorf("%s: %+v, want %+v", dir, got, want)
		}
		must(t, "snapshot", filepath.Join(t.TempDir(), "s"), "--data-dir", dir)
		again.Close()
	}
}

// A directory takes over the identity of another mesh's snapshot where that is meant, and not otherwise.
func TestRestoreOfAnotherMesh(t *testing.T) {
	file, s := saved(t)
	want := s.content(t)
	other := open(t, newDir(t))
	other.put(t, "/registry/pods/default/theirs", "1")
	own := other.content(t)
	other.Close()
	refused(t, 2, "is of the mesh "+want.Identity+", but ", "restore", file, "--replace", "--data-dir", other.dir)
	if again := open(t, other.dir); again.content(t).Checksum != own.Checksum {
		t.Error("a restore that was refused changed the store")
	} else {
		again.Close()
	}
	must(t, "restore", file, "--replace", "--other-mesh", "--data-dir", other.dir)
	again := open(t, other.dir)
	if got := again.content(t); got.Checksum != want.Checksum {
		t.Errorf("%+v, want %+v", got, want)
	}
	if identity, err := storedir.ReadIdentity(storedir.Of(other.dir)); err != nil || identity != want.Identity {
		t.Errorf("%s, %v, want %s", identity, err, want.Identity)
	}
}

// What others saved is restored as well: a snapshot of etcd's own tools, which has no record.
func TestRestoreWhatEtcdctlSaved(t *testing.T) {
	s := open(t, newDir(t))
	s.put(t, "/registry/pods/default/a", "1")
	want := s.content(t)
	file := filepath.Join(t.TempDir(), "s")
	if _, err := clientsnapshot.SaveWithVersion(t.Context(), zap.NewNop(),
		clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(s.dir, "etcd.sock")}}, file); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if out := must(t, "verify", file); !strings.Contains(out, "no record of what was taken stands beside it") {
		t.Error(out)
	}
	must(t, "restore", file, "--replace", "--data-dir", s.dir)
	if got := open(t, s.dir).content(t); got.Checksum != want.Checksum {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The store of a cluster is saved by its servers, of which the first may be gone.
func TestSnapshotOfACluster(t *testing.T) {
	_, s := saved(t)
	dir := t.TempDir()
	socket := "unix://" + filepath.Join(s.dir, "etcd.sock")
	must(t, "snapshot", dir, "--etcd-servers", socket, "--keep", "1")
	files := list(t, dir)
	content, record, err := Verify(filepath.Join(dir, files[0]))
	if err != nil || content.Checksum != s.content(t).Checksum || record == nil {
		t.Errorf("%+v, %+v, %v", content, record, err)
	}
}

// Whatever is wrong with a file is said in one line, by verify and by restore, and the store stays as it is.
func TestDamagedSnapshots(t *testing.T) {
	file, s := saved(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	record, err := os.ReadFile(file + recordSuffix)
	if err != nil {
		t.Fatal(err)
	}
	want := s.content(t)
	s.Close()
	files := list(t, s.dir)
	changed := func(at int) []byte {
		copied := append([]byte{}, whole...)
		copied[at] ^= 1
		return copied
	}
	for name, row := range map[string]struct {
		data, record []byte
		text         string
	}{
		"empty":                   {nil, record, "has no checksum at its end"},
		"a checksum alone":        {whole[:32], nil, "has no checksum at its end"},
		"half of it":              {whole[:len(whole)/2], record, "has no checksum at its end"},
		"cut off by a byte":       {whole[:len(whole)-1], record, "has no checksum at its end"},
		"cut off by its checksum": {whole[:len(whole)-32], record, "has no checksum at its end"},
		"cut off by a sector":     {whole[:len(whole)-512], record, "is damaged"},
		"a bit at the beginning":  {changed(100), record, "is damaged"},
		"a bit in the middle":     {changed(len(whole) / 2), record, "is damaged"},
		"a bit of its checksum":   {changed(len(whole) - 1), record, "is damaged"},
		"something else":          {sealed(bytes.Repeat([]byte("x"), 4096)), nil, "cannot be read (file size too"},
		"half a database":         {sealed(whole[:8192]), nil, "cannot be read ("},
		"no record":               {whole, []byte("x"), "is no record of a snapshot"},
		"another record":          {whole, []byte(`{"revision": 1, "checksum": "sha256:00"}`), "is not what was taken"},
		"a record of another moment": {whole, fmt.Appendf(nil, `{"revision": 1, "checksum": %q}`, want.Checksum),
			"is not what was taken"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := filepath.Join(t.TempDir(), "s")
			write(t, bad, string(row.data))
			if row.record != nil {
				write(t, bad+recordSuffix, string(row.record))
			}
			refused(t, 1, row.text, "verify", bad)
			refused(t, 1, row.text, "restore", bad, "--replace", "--data-dir", s.dir)
		})
	}
	if now := list(t, s.dir); !equalSets(now, files) {
		t.Errorf("%v, it was %v", now, files)
	}
	if got := open(t, s.dir).content(t); got.Checksum != want.Checksum {
		t.Error("the store is another")
	}
}

// A restore that finds no room leaves the store as it is, and nothing of its own.
func TestRestoreOntoAFullDisk(t *testing.T) {
	file, s := saved(t)
	s.Close()
	dir := smallDisk(t, "1m")
	refused(t, 1, "no space left on device", "restore", file, "--data-dir", dir)
	if left := list(t, dir); !equalSets(left, []string{"lock"}) {
		t.Errorf("%v is left", left)
	}
}

// A later etcd's form is not guessed at.
func TestCheckForm(t *testing.T) {
	own := semver.Version{Major: 3, Minor: 7, Patch: 5}
	for form, want := range map[string]string{
		"3.6.0": "", "3.7.0": "", "3.7.9": "",
		"3.8.0": "etcd 3.8 wrote it, and this program reads up to 3.7",
		"4.0.0": "etcd 4.0 wrote it", "2.9.0": "etcd 2.9 wrote it",
	} {
		err := checkForm(semver.New(form), own)
		if (want == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", form, err, want)
		}
	}
	if err := checkForm(nil, own); err != nil {
		t.Errorf("before 3.6: %v", err)
	}
}
