package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"keelson.dev/kit/failpoint"
)

// taking is a snapshot to take.
type taking struct {
	// path is the file to write, or the folder to write one into.
	path string
	// keep is how many of the folder's snapshots of this store stay; 0: all.
	keep int
	now  time.Time
}

// taken is what became of it.
type taken struct {
	path    string
	record  Record
	removed []string
}

// target is the folder and the name of the file, which is not there yet.
func (t taking) target() (dir, name string, into bool, err error) {
	dir, name = filepath.Split(t.path)
	if info, err := os.Stat(t.path); err == nil && info.IsDir() {
		dir, name, into = t.path, nameAt(t.now), true
	}
	if dir == "" {
		dir = "."
	}
	switch path := filepath.Join(dir, name); {
	case name == "":
		return "", "", false, fmt.Errorf("%s is no folder", t.path)
	case t.keep > 0 && !into:
		return "", "", false, fmt.Errorf("--keep: %s is a file, and snapshots are kept in a folder", t.path)
	default:
		if _, err := os.Lstat(path); err == nil {
			return "", "", false, fmt.Errorf("%s is there already: give another name, or a folder", path)
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", "", false, err
		}
	}
	return dir, name, into, nil
}

// take saves a snapshot. What it returns without an error is whole and survives a crash; otherwise there is no file of
// that name.
func (t taking) take(ctx context.Context, client *clientv3.Client) (*taken, error) {
	dir, name, into, err := t.target()
	if err != nil {
		return nil, err
	}
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if into {
		if err := f.sweep(); err != nil {
			return nil, err
		}
	}
	record, err := t.save(ctx, client, f, name)
	if err != nil {
		return nil, err
	}
	done := &taken{path: filepath.Join(dir, name), record: *record}
	if t.keep > 0 {
		if done.removed, err = f.expire(record.Store, name, t.keep); err != nil {
			return done, fmt.Errorf("%s is taken, but older ones could not be removed: %w", done.path, err)
		}
	}
	return done, nil
}

// save writes the snapshot and its record. The record has its name first: a snapshot that has its own is complete.
func (t taking) save(ctx context.Context, client *clientv3.Client, f *folder, name string) (*Record, error) {
	partial, err := f.write(name, func(to io.Writer) error { return stream(ctx, client, to) })
	if err != nil {
		return nil, fmt.Errorf("taking the snapshot: %w", err)
	}
	defer func() { _ = os.Remove(partial) }() // it has another name if all went well
	content, err := Inspect(partial)
	if err != nil {
		return nil, fmt.Errorf("what the store sent is no snapshot: %w", err)
	}
	info, err := os.Stat(partial)
	if err != nil {
		return nil, err
	}
	store, err := storeName(ctx, client, content.Identity)
	if err != nil {
		return nil, err
	}
	record := &Record{File: name, Bytes: info.Size(), Taken: t.now.UTC().Truncate(time.Second), Store: store,
		Content: content}
	described, err := f.write(name+recordSuffix, func(to io.Writer) error {
		encoder := json.NewEncoder(to)
		encoder.SetIndent("", "  ")
		return encoder.Encode(record)
	})
	if err != nil {
		return nil, fmt.Errorf("writing the snapshot's record: %w", err)
	}
	for _, rename := range []struct{ from, to string }{{described, name + recordSuffix}, {partial, name}} {
		if err := failpoint.Inject("apiserver/snapshot.rename.before"); err != nil {
			return nil, err
		}
		if err := os.Rename(rename.from, filepath.Join(f.path, rename.to)); err != nil {
			return nil, err
		}
	}
	return record, f.sync()
}

// stream writes the store as it is at one moment, while others write to it.
func stream(ctx context.Context, client *clientv3.Client, to io.Writer) error {
	sent, err := client.SnapshotWithVersion(ctx)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, sent.Snapshot)
	return errors.Join(err, sent.Snapshot.Close())
}

// storeName tells the store from others: by its mesh, or where it does not say of which it is, by its cluster.
func storeName(ctx context.Context, client *clientv3.Client, identity string) (string, error) {
	if identity != "" {
		return "mesh " + identity, nil
	}
	members, err := client.MemberList(ctx)
	if err != nil {
		return "", fmt.Errorf("asking the cluster for its name: %w", err)
	}
	return fmt.Sprintf("cluster %x", members.Header.ClusterId), nil
}
