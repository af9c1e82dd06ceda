package containerlog

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/plainfile"
)

// Rotator keeps each log within a size and a number of files:
//
//	0.log                      the one that the runtime writes
//	0.log.20260131-100000      the one before
//	0.log.20260131-095000.gz   older ones
type Rotator struct {
	// MaxSize is the number of bytes after which a log is rotated, MaxFiles the number of files including the current
	// one.
	MaxSize  int64
	MaxFiles int
	// Reopen makes the runtime write to a new file at the log's path.
	Reopen func(ctx context.Context, containerID string) error
}

const (
	rotatedFormat = "20060102-150405"
	packed        = ".gz"
	unfinished    = ".tmp"
)

// Rotate rotates a container's log if it is too large, and compresses and removes older ones. It may be killed at
// any step and called again.
func (r *Rotator) Rotate(ctx context.Context, containerID string, log Log, now time.Time) error {
	dir, err := log.Root.Folder(filepath.Dir(log.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the log's folder: %w", err)
	}
	defer dir.Close()
	f := folder{Root: dir, log: log}
	info, err := dir.Lstat(f.name())
	if errors.Is(err, fs.ErrNotExist) {
		// An earlier call may have been killed after it moved the file away.
		return r.reopenMoved(ctx, containerID, f)
	}
	if err != nil {
		return fmt.Errorf("looking at the log: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("looking at the log: %s: %w", log.Path, plainfile.ErrNotPlain)
	}
	if info.Size() < r.MaxSize {
		return nil
	}
	if err := r.tidy(f); err != nil {
		return err
	}
	return r.turn(ctx, containerID, f, f.name()+"."+now.UTC().Format(rotatedFormat))
}

// folder is the open folder of a container's logs. Files are named relative to it, so that a link that replaces a
// folder leads nowhere else.
type folder struct {
	*os.Root
	log Log
}

func (f folder) name() string { return filepath.Base(f.log.Path) }

// matching returns the sorted names in the folder that begin with the log's and end with suffix.
func (f folder) matching(suffix string) ([]string, error) {
	dir, err := f.Open(".")
	if err != nil {
		return nil, fmt.Errorf("looking for rotated logs: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("looking for rotated logs: %w", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, f.name()+".") || !strings.HasSuffix(name, suffix)
	})
	slices.Sort(names)
	return names, nil
}

// turn moves the file away and requests a new one; if that fails, it restores the old name.
func (r *Rotator) turn(ctx context.Context, containerID string, f folder, moved string) error {
	if _, err := f.Lstat(moved); err == nil {
		return nil // rotated within this second already
	}
	if err := f.Rename(f.name(), moved); err != nil {
		return fmt.Errorf("moving the log away: %w", err)
	}
	err := failpoint.Inject("nodeagent/log.reopen.before")
	if err == nil {
		err = r.Reopen(ctx, containerID)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("reopening the log: %w", err), f.Rename(moved, f.name()))
	}
	return nil
}

// reopenMoved requests a new file if only rotated ones are left. A container that has not written yet has neither.
func (r *Rotator) reopenMoved(ctx context.Context, containerID string, f folder) error {
	rotated, err := f.rotated()
	if err != nil || len(rotated) == 0 {
		return err
	}
	if err := r.Reopen(ctx, containerID); err != nil {
		return fmt.Errorf("reopening the log: %w", err)
	}
	return nil
}

// tidy makes room for one more file: it removes unfinished and excess files, and compresses all but the newest.
func (r *Rotator) tidy(f folder) error {
	leftovers, err := f.matching(unfinished)
	if err != nil {
		return err
	}
	rotated, err := f.rotated()
	if err != nil {
		return err
	}
	excess, pack := divide(rotated, r.MaxFiles)
	for _, name := range append(leftovers, excess...) {
		if err := f.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing an old log: %w", err)
		}
	}
	for _, name := range pack {
		if err := f.compress(name); err != nil {
			return err
		}
	}
	return nil
}

// rotated returns the finished rotated files of a log, oldest first.
func (f folder) rotated() ([]string, error) {
	names, err := f.matching("")
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, unfinished) }), err
}

// divide returns which of the rotated files (oldest first) to remove so that, with the current one and the next
// rotated one, maxFiles remain, and which of the rest to compress: a follower may still read the newest.
func divide(rotated []string, maxFiles int) (excess, pack []string) {
	keep := max(maxFiles-2, 0)
	cut := max(len(rotated)-keep, 0)
	excess, rotated = rotated[:cut], rotated[cut:]
	for i, file := range rotated {
		if i < len(rotated)-1 && !strings.HasSuffix(file, packed) {
			pack = append(pack, file)
		}
	}
	return excess, pack
}

// compress compresses a file. The compressed file gets its name when it is complete; the plain one is removed last.
// Anything but a regular file is removed: a rotated log was one.
func (f folder) compress(name string) error {
	source, err := f.log.Root.Open(filepath.Join(filepath.Dir(f.log.Path), name))
	if errors.Is(err, plainfile.ErrNotPlain) {
		return f.RemoveAll(name)
	}
	if err != nil {
		return fmt.Errorf("packing a log: %w", err)
	}
	defer source.Close()
	target, err := f.OpenFile(name+unfinished, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("packing a log: %w", err)
	}
	writer := gzip.NewWriter(target)
	_, err = io.Copy(writer, source)
	if err := errors.Join(err, writer.Close(), target.Close()); err != nil {
		return errors.Join(fmt.Errorf("packing a log: %w", err), f.Remove(name+unfinished))
	}
	if err := f.Rename(name+unfinished, name+packed); err != nil {
		return fmt.Errorf("packing a log: %w", err)
	}
	if err := f.Remove(name); err != nil {
		return fmt.Errorf("removing a packed log: %w", err)
	}
	return nil
}
