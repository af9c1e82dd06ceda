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
)

// Rotator keeps each log within a size and a number of files:
//
//	0.log                      the one that the runtime writes
//	0.log.20260131-100000      the one before
//	0.log.20260131-095000.gz   older ones
type Rotator struct {
	// MaxSize is the number of bytes after which a log is rotated, MaxFiles the number of files with the current one.
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

// Rotate rotates a container's log if it is too large, and packs and removes older ones. It may be killed at any step and
// called again.
func (r *Rotator) Rotate(ctx context.Context, containerID, path string, now time.Time) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		// An earlier call may have been killed after it moved the file away.
		return r.reopenMoved(ctx, containerID, path)
	}
	if err != nil {
		return fmt.Errorf("looking at the log: %w", err)
	}
	if info.Size() < r.MaxSize {
		return nil
	}
	if err := r.tidy(path); err != nil {
		return err
	}
	return r.turn(ctx, containerID, path, path+"."+now.UTC().Format(rotatedFormat))
}

// turn moves the file away and asks for a new one; without a new one the old name comes back.
func (r *Rotator) turn(ctx context.Context, containerID, path, moved string) error {
	if _, err := os.Lstat(moved); err == nil {
		return nil // rotated within this second already
	}
	if err := os.Rename(path, moved); err != nil {
		return fmt.Errorf("moving the log away: %w", err)
	}
	err := failpoint.Inject("nodeagent/log.reopen.before")
	if err == nil {
		err = r.Reopen(ctx, containerID)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("reopening the log: %w", err), os.Rename(moved, path))
	}
	return nil
}

// reopenMoved asks for a new file where only rotated ones are left. A container that has not written yet has neither.
func (r *Rotator) reopenMoved(ctx context.Context, containerID, path string) error {
	rotated, err := rotatedFiles(path)
	if err != nil || len(rotated) == 0 {
		return err
	}
	if err := r.Reopen(ctx, containerID); err != nil {
		return fmt.Errorf("reopening the log: %w", err)
	}
	return nil
}

// tidy makes room for one more file: it removes what is unfinished and what is too old, and packs all but the newest.
func (r *Rotator) tidy(path string) error {
	leftovers, err := filepath.Glob(path + ".*" + unfinished)
	if err != nil {
		return fmt.Errorf("looking for rotated logs: %w", err)
	}
	rotated, err := rotatedFiles(path)
	if err != nil {
		return err
	}
	excess, pack := divide(rotated, r.MaxFiles)
	for _, file := range append(leftovers, excess...) {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing an old log: %w", err)
		}
	}
	for _, file := range pack {
		if err := compress(file); err != nil {
			return err
		}
	}
	return nil
}

// rotatedFiles returns the finished rotated files of a log, oldest first.
func rotatedFiles(path string) ([]string, error) {
	files, err := filepath.Glob(path + ".*")
	if err != nil {
		return nil, fmt.Errorf("looking for rotated logs: %w", err)
	}
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, unfinished) })
	slices.Sort(files)
	return files, nil
}

// divide tells which of the rotated files (oldest first) have to go so that, with the current one and the one that it is
// about to become, there are maxFiles, and which of the rest are to be packed: a follower may still read the newest.
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

// compress packs a file. The packed one gets its name when it is complete; the plain one goes last.
func compress(path string) (err error) {
	source, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("packing a log: %w", err)
	}
	defer source.Close()
	target, err := os.OpenFile(path+unfinished, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("packing a log: %w", err)
	}
	writer := gzip.NewWriter(target)
	_, err = io.Copy(writer, source)
	if err := errors.Join(err, writer.Close(), target.Close()); err != nil {
		return errors.Join(fmt.Errorf("packing a log: %w", err), os.Remove(path+unfinished))
	}
	if err := os.Rename(path+unfinished, path+packed); err != nil {
		return fmt.Errorf("packing a log: %w", err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("removing a packed log: %w", err)
	}
	return nil
}
