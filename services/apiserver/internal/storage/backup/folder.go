package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// folder is where snapshots are written, one at a time.
type folder struct {
	path string
	open *os.File
}

// openFolder keeps other snapshots off the folder until it is closed. A file system without locks is taken as it is.
func openFolder(path string) (*folder, error) {
	open, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(open.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		_ = open.Close()
		return nil, fmt.Errorf("another snapshot is being written to %s", path)
	}
	return &folder{path: path, open: open}, nil
}

func (f *folder) close() { _ = f.open.Close() }

// sync has what was done to the folder's names survive a crash.
func (f *folder) sync() error { return f.open.Sync() }

// write makes a file that only its owner may read, under a partial name, which it returns. When it returns, the content
// survives a crash. Of a file that could not be written nothing is left.
func (f *folder) write(name string, content func(io.Writer) error) (partial string, err error) {
	partial = filepath.Join(f.path, name+partialSuffix)
	if err := os.Remove(partial); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err // what a killed snapshot left is not in the way, and no link of a stranger is followed
	}
	file, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	err = content(file)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(partial))
	}
	return partial, nil
}

// sweep removes what killed snapshots into the folder have left: partial files, and records of snapshots that have no
// name yet, or none any more.
func (f *folder) sweep() error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name, partial := strings.CutSuffix(entry.Name(), partialSuffix)
		snapshot, _ := strings.CutSuffix(name, recordSuffix)
		if ownName.MatchString(snapshot) && (partial || name != snapshot && f.orphaned(snapshot)) {
			err = errors.Join(err, os.Remove(filepath.Join(f.path, entry.Name())))
		}
	}
	return err
}

// orphaned reports whether there is the record of a snapshot, and no snapshot.
func (f *folder) orphaned(snapshot string) bool {
	path := filepath.Join(f.path, snapshot)
	record, err := readRecord(path)
	return !exists(path) && err == nil && record != nil && record.File == snapshot
}

// expire removes the store's snapshots that are not among the newest, and returns their names. The record goes last, so
// that what a crash leaves of a snapshot can still be told to be one.
func (f *folder) expire(store, made string, keep int) (removed []string, err error) {
	files, err := f.list()
	if err != nil {
		return nil, err
	}
	for _, name := range expired(files, store, made, keep) {
		path := filepath.Join(f.path, name)
		if err := errors.Join(os.Remove(path), os.Remove(path+recordSuffix)); err != nil {
			return removed, err
		}
		removed = append(removed, name)
	}
	return removed, f.sync()
}

// list returns the folder's files that could be snapshots.
func (f *folder) list() ([]kept, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, err
	}
	var files []kept
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || !ownName.MatchString(entry.Name()) {
			continue
		}
		// A record that cannot be read keeps its snapshot from going.
		record, err := readRecord(filepath.Join(f.path, entry.Name()))
		if err != nil {
			record = nil
		}
		files = append(files, kept{name: entry.Name(), bytes: info.Size(), record: record})
	}
	return files, nil
}
