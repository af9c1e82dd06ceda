package staticpods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	// largest bounds how many bytes of a file are read: more than the API stores of a Pod.
	largest = 1 << 20
	// mostFiles bounds how many files are read.
	mostFiles = 1000
	// rescan is how often all files are read without a notification: a change behind a symbolic link causes none.
	rescan = 20 * time.Second
	// A folder with changes is read after a pause of quiet, but after patience at the latest.
	quiet    = 200 * time.Millisecond
	patience = 2 * time.Second
)

// readFolder reads the files of a folder, sorted by name, or the single file at the path. A missing folder is
// empty. An error means that nothing is known about the files.
func readFolder(path string) ([]File, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []File{readFile(path)}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	files := make([]File, 0, len(entries))
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		if len(files) == mostFiles {
			files = append(files, File{Name: name,
				Problem: fmt.Sprintf("it is not read: only the first %d files of a folder are", mostFiles)})
			break
		}
		if _, err := os.Lstat(filepath.Join(path, name)); errors.Is(err, fs.ErrNotExist) {
			continue // it has gone meanwhile
		}
		files = append(files, readFile(filepath.Join(path, name)))
	}
	return files, nil
}

// readFile reads a regular file, or one that a link leads to. It never blocks and opens no device.
func readFile(path string) File {
	file := File{Name: filepath.Base(path)}
	data, err := readRegular(path)
	if file.Data = data; err != nil {
		file.Problem = oneLine("it cannot be read: " + err.Error())
	}
	return file
}

func readRegular(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, notRegular(info))
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() { // it was replaced a moment ago
		return nil, errors.Join(err, notRegular(info))
	}
	data, err := io.ReadAll(io.LimitReader(file, largest+1))
	if err != nil {
		return nil, err
	}
	if len(data) > largest {
		return nil, fmt.Errorf("it has more than %d bytes", largest)
	}
	return data, nil
}

func notRegular(info fs.FileInfo) error {
	if info == nil {
		return nil
	}
	return fmt.Errorf("it is no regular file but %s", info.Mode())
}

// watch calls changed after changes in the folder, until ctx ends. If the kernel cannot watch the folder, the
// periodic scan remains.
func watch(ctx context.Context, path string, log *zap.Logger, changed func()) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("--pod-manifest-path: changes are noticed late", zap.Duration("after", rescan), zap.Error(err))
		return
	}
	defer func() { _ = watcher.Close() }()
	follow := func() { // each time, since another folder may have replaced it
		if err := watcher.Add(path); err != nil && !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
			log.Debug("--pod-manifest-path: not watched", zap.Error(err))
		}
	}
	follow()
	changed() // for changes before the watch
	again := time.NewTicker(rescan)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-watcher.Errors: // the periodic scan finds what was lost
		case <-again.C:
			follow()
		case <-watcher.Events:
			settle(ctx, watcher.Events)
			changed()
		}
	}
}

// settle returns when no change has come for a moment.
func settle(ctx context.Context, events <-chan fsnotify.Event) {
	late := time.After(patience)
	for {
		select {
		case <-ctx.Done():
			return
		case <-late:
			return
		case <-events:
		case <-time.After(quiet):
			return
		}
	}
}
