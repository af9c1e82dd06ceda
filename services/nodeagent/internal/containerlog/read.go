// Package containerlog reads the log files that a container runtime writes, and bounds their size.
package containerlog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"keelson.dev/services/nodeagent/internal/plainfile"
)

// idle is the maximum time that a follower waits before it checks whether the container still runs.
const idle = time.Second

// Writers take the two streams; they may be the same. A Flush method is called whenever a follower has to wait.
type Writers struct{ Stdout, Stderr io.Writer }

// Log is the log file of one container instance, in Root. The container may be able to write there: only a regular
// file that is reached without links is read.
type Log struct {
	Root plainfile.Root
	Path string
}

// Read writes the selected part of a log. With Follow it goes on, through rotations of the file, until running
// reports that the container has ended and everything is written, or until ctx ends. A container that has not
// written yet has no file: that is an empty log.
func Read(ctx context.Context, log Log, options Options, running func(context.Context) (bool, error),
	out Writers) error {
	r := &reader{Log: log, format: newFormatter(options), out: out}
	if options.Limit == 0 {
		return nil
	}
	if options.Follow {
		watcher, err := fsnotify.NewWatcher()
		if err != nil {
			return fmt.Errorf("watching the log: %w", err)
		}
		defer func() { _ = watcher.Close() }() // nothing is lost with it
		// A folder that cannot be watched only makes following slower.
		_ = watcher.Add(filepath.Dir(log.Path))
		r.changes = watcher.Events
	}
	defer r.close()
	if err := r.begin(options.Tail); err != nil {
		return err
	}
	if !options.Follow {
		_, err := r.copy(ctx)
		return err
	}
	return r.follow(ctx, running)
}

type reader struct {
	Log
	format  *formatter
	out     Writers
	changes <-chan fsnotify.Event
	file    *os.File
	buffer  *bufio.Reader
	rest    []byte // an entry whose end has not been written yet
	skip    bool   // the entry is too long to be one
}

func (r *reader) close() {
	if r.file != nil {
		r.file.Close()
	}
}

// begin opens the file and goes to the first selected line.
func (r *reader) begin(tail int64) error {
	if err := r.open(); err != nil || r.file == nil || tail < 0 {
		return err
	}
	offset, err := tailOffset(r.file, tail)
	if err != nil {
		return err
	}
	if _, err := r.file.Seek(offset, io.SeekStart); err != nil {
		return fmt.Errorf("going to the end of the log: %w", err)
	}
	return nil
}

func (r *reader) open() error {
	file, err := r.Root.Open(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	r.close()
	r.file, r.buffer, r.rest = file, bufio.NewReaderSize(file, 64<<10), nil
	r.skip = false
	return nil
}

// maxEntry is the length of the longest entry that is read; runtimes split longer lines of a container.
const maxEntry = 1 << 20

// copy writes entries until the end of the file, and reports whether the limit is reached.
func (r *reader) copy(ctx context.Context) (done bool, err error) {
	if r.file == nil {
		return false, nil
	}
	for ctx.Err() == nil {
		raw, err := r.buffer.ReadSlice('\n')
		if r.skip = r.skip || len(r.rest)+len(raw) > maxEntry; !r.skip {
			r.rest = append(r.rest, raw...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("reading the log: %w", err)
		}
		entry, err := parse(bytes.TrimSuffix(r.rest, []byte{'\n'}))
		if err == nil && !r.skip { // a line that is no entry (left by a crash of the runtime) is left out
			if done, err := r.write(entry); err != nil || done {
				return done, err
			}
		}
		r.rest, r.skip = r.rest[:0], false
	}
	return false, ctx.Err()
}

func (r *reader) write(entry line) (done bool, err error) {
	text, done := r.format.format(entry)
	out := r.out.Stdout
	if entry.stream == Stderr {
		out = r.out.Stderr
	}
	if len(text) == 0 || out == nil {
		return done, nil
	}
	if _, err := out.Write(text); err != nil {
		return false, fmt.Errorf("writing the log: %w", err)
	}
	return done, nil
}

// follow copies until the container has ended. It checks whether the container runs before each copy, so that the copy
// after its end finds its last lines.
func (r *reader) follow(ctx context.Context, running func(context.Context) (bool, error)) error {
	for {
		alive, err := running(ctx)
		if err != nil {
			return err
		}
		done, err := r.copyAll(ctx)
		if err != nil || done || !alive {
			return ignoreEnd(ctx, err)
		}
		r.flush()
		if err := r.wait(ctx); err != nil {
			return ignoreEnd(ctx, err)
		}
	}
}

// copyAll copies to the end of the newest file. The old file of a rotation gets its last lines before the new one is
// created, so once the new one is seen the old one is read to its end.
func (r *reader) copyAll(ctx context.Context) (done bool, err error) {
	for {
		rotated, err := r.rotated()
		if err != nil {
			return false, err
		}
		if done, err := r.copy(ctx); err != nil || done {
			return done, err
		}
		if !rotated {
			return false, nil
		}
		if err := r.open(); err != nil {
			return false, err
		}
	}
}

// rotated reports whether another file than the open one has the log's name.
func (r *reader) rotated() (bool, error) {
	named, err := r.Root.Open(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("opening the log: %w", err)
	}
	defer named.Close()
	if r.file == nil {
		return true, nil
	}
	now, err1 := named.Stat()
	open, err2 := r.file.Stat()
	if err := errors.Join(err1, err2); err != nil {
		return false, fmt.Errorf("looking at the log: %w", err)
	}
	return !os.SameFile(now, open), nil
}

// wait returns when the folder of the log changes, or after a while, or with an error when ctx ends.
func (r *reader) wait(ctx context.Context) error {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case event, ok := <-r.changes:
			if !ok {
				r.changes = nil
			}
			if event.Name == r.Path {
				return nil
			}
		}
	}
}

func (r *reader) flush() {
	for _, out := range []io.Writer{r.out.Stdout, r.out.Stderr} {
		if flusher, ok := out.(interface{ Flush() }); ok {
			flusher.Flush()
		}
	}
}

// ignoreEnd treats the end of a follower's context as a normal end: its client has gone.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// tailOffset returns where the last n lines of the container begin. An entry that the next one continues (tag P)
// does not count.
func tailOffset(file *os.File, n int64) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, fmt.Errorf("looking at the log: %w", err)
	}
	end := info.Size()
	if n == 0 {
		return end, nil
	}
	scan := backwards{file: file, at: end}
	lines, begin := int64(0), end
	for {
		raw, start, err := scan.previous()
		if err != nil || raw == nil {
			return begin, err
		}
		if entry, err := parse(raw); err != nil || !entry.partial {
			if lines == n {
				return begin, nil
			}
			lines++
		}
		begin = start
	}
}

// backwards yields the lines of a file from its end to its beginning.
type backwards struct {
	file *os.File
	at   int64  // where held begins in the file
	held []byte // what is read and not yet yielded
}

const block = 32 << 10

// previous returns the line before the last one that it returned, with its offset; nil at the beginning. Text after
// the last line feed is an entry still being written: it is left out.
func (b *backwards) previous() (raw []byte, start int64, err error) {
	for {
		body := b.held
		if last := bytes.LastIndexByte(body, '\n'); last >= 0 {
			if first := bytes.LastIndexByte(body[:last], '\n'); first >= 0 || b.at == 0 {
				raw, start = body[first+1:last], b.at+int64(first+1)
				b.held = body[:first+1]
				return raw, start, nil
			}
		} else if b.at == 0 {
			return nil, 0, nil
		}
		if len(b.held) > maxEntry { // what began further ahead is no entry
			return nil, 0, nil
		}
		size := min(int64(block), b.at)
		chunk := make([]byte, size, size+int64(len(b.held)))
		if _, err := b.file.ReadAt(chunk, b.at-size); err != nil {
			return nil, 0, fmt.Errorf("reading the log: %w", err)
		}
		b.at -= size
		b.held = append(chunk, b.held...)
	}
}
