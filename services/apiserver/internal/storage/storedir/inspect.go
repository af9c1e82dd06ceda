package storedir

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	// lockWait is how long another process may hold the database.
	lockWait = time.Second
	walExt   = ".wal"
)

// Of are the paths of the store in an apiserver's data directory.
func Of(dataDir string) Paths { return At(filepath.Join(dataDir, "etcd")) }

// At are the paths of a store in the folder that is etcd's directory.
func At(store string) Paths {
	return Paths{
		Identity: filepath.Join(filepath.Dir(store), "identity"),
		Left:     filepath.Join(filepath.Dir(store), "left"),
		Moved:    filepath.Join(filepath.Dir(store), "moved"),
		Store:    store,
		Database: datadir.ToBackendFileName(store),
		Log:      datadir.ToWALDir(store),
	}
}

// Check inspects the store's files and decides whether it may be opened. It reads all of the database's keys and of the
// log, as opening it does, and changes nothing. The error is one sentence.
func Check(p Paths) (Found, error) {
	found, err := inspect(p)
	if err != nil {
		return found, err
	}
	return found, Decide(found)
}

func inspect(p Paths) (Found, error) {
	f := Found{Paths: p}
	var err error
	if f.Identity, err = ReadIdentity(p); err != nil {
		return f, err
	}
	if f.Left, _, err = HasLeft(p); err != nil {
		return f, err
	}
	if f.Moved, err = ReadMoved(p); err != nil {
		return f, err
	}
	if f.Log, err = reading(p, p.Log, readLog); err != nil {
		return f, err
	}
	f.Database, err = reading(p, p.Database, readDatabase)
	return f, err
}

// reading turns whatever goes wrong in read into the sentence about path. A path that does not exist has nothing to
// read.
func reading[T any](p Paths, path string, read func(string) (*T, error)) (result *T, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err := guarded(func() (err error) { result, err = read(path); return err }); err != nil {
		return nil, p.Damage(path, "cannot be read (%s)", OneLine(err.Error()))
	}
	return result, nil
}

// guarded makes an error of whatever goes wrong in read, be it the library's panic or a page beyond the end of the
// file.
func guarded(read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("%v", failure)
		}
	}()
	return read()
}

// OneLine is text without line breaks.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func readDatabase(path string) (found *Database, err error) {
	err = view(path, func(tx *bbolt.Tx) error {
		found = &Database{Index: consistentIndex(tx), Members: members(tx)}
		return nil
	})
	return found, err
}

// View walks all pages of a database file, which may have more behind its end, and hands it to read.
func View(path string, read func(*bbolt.Tx) error) error {
	return guarded(func() error { return view(path, read) })
}

func view(path string, read func(*bbolt.Tx) error) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return errors.New("it is empty")
	}
	db, err := bbolt.Open(path, 0o400, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	tx, err := db.Begin(false)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if info.Size() < tx.Size() {
		return fmt.Errorf("it has %d bytes and should have %d", info.Size(), tx.Size())
	}
	if err := tx.ForEach(checkBucket); err != nil {
		return err
	}
	return read(tx)
}

// checkBucket walks all pages of a bucket.
func checkBucket(name []byte, bucket *bbolt.Bucket) error {
	var last []byte
	return bucket.ForEach(func(key, _ []byte) error {
		if last != nil && bytes.Compare(last, key) >= 0 {
			return fmt.Errorf("the keys of its bucket %q are out of order", name)
		}
		last = key
		return nil
	})
}

// consistentIndex is the last entry of the log that the database contains; 0: none.
func consistentIndex(tx *bbolt.Tx) uint64 {
	meta := tx.Bucket([]byte("meta"))
	if meta == nil {
		return 0
	}
	if value := meta.Get([]byte("consistent_index")); len(value) == 8 {
		return binary.BigEndian.Uint64(value)
	}
	return 0
}

// members is how many members the store has, as far as the database contains.
func members(tx *bbolt.Tx) int {
	bucket := tx.Bucket([]byte("members"))
	if bucket == nil {
		return 0
	}
	return bucket.Stats().KeyN
}

// readLog reads a log as the library does when it opens one, without writing to it. A last record that was not written
// to its end is what a crash leaves, and no damage.
func readLog(dir string) (*Log, error) {
	lastFile, found, err := lastLogFile(dir)
	if err != nil || !found {
		return nil, err
	}
	quiet := silentLogger()
	snapshots, err := wal.ValidSnapshotEntries(quiet, dir)
	if err != nil {
		return nil, err
	}
	start := &walpb.Snapshot{}
	if len(snapshots) > 0 {
		start = snapshots[len(snapshots)-1]
	}
	log, err := wal.OpenForRead(quiet, dir, start)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	_, state, entries, err := log.ReadAll()
	if err != nil {
		return nil, err
	}
	last := start.GetIndex()
	if len(entries) > 0 {
		last = entries[len(entries)-1].GetIndex()
	}
	return &Log{Start: start.GetIndex(), Last: last, Committed: state.GetCommit(), LastFile: lastFile}, nil
}

// lastLogFile is the first entry of the log's last file; found is false when there is no file.
func lastLogFile(dir string) (index uint64, found bool, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, false, err
	}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != walExt {
			continue
		}
		var sequence uint64
		if _, err := fmt.Sscanf(entry.Name(), "%016x-%016x.wal", &sequence, &index); err != nil {
			return 0, false, fmt.Errorf("%s is no name of a log's file", entry.Name())
		}
		found = true
	}
	return index, found, nil
}

// silentLogger logs nothing; where the library ends the process, it panics.
func silentLogger() *zap.Logger {
	return zap.New(zapcore.NewNopCore(), zap.WithFatalHook(panics{}), zap.WithPanicHook(panics{}))
}

type panics struct{}

func (panics) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	panic(Describe(entry.Message, fields))
}

// Describe is a line of the library's log in words: its message and the error in it.
func Describe(message string, fields []zapcore.Field) string {
	for _, field := range fields {
		if err, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
			message += ": " + err.Error()
		}
	}
	return OneLine(message)
}
