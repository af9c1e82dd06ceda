package csiplugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"

	"keelson.dev/kit/wakeup"
	"keelson.dev/services/nodeagent/internal/plainfile"
)

// mostPlugins is how many entries of the folder are read.
const mostPlugins = 256

// sockets returns the sockets in the folder, by name. It leaves other files alone and lists them in the error,
// beside a result; a nil result means that nothing is known.
func sockets(root plainfile.Root, dir string) (map[string]identity, error) {
	folder, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]identity{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the folder of registrations: %w", err)
	}
	defer folder.Close()
	names, err := folder.Readdirnames(mostPlugins)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading the folder of registrations: %w", err)
	}
	found := map[string]identity{}
	var problems []error
	for _, name := range names {
		socket, err := identityOf(root, filepath.Join(dir, name))
		switch {
		case err == nil:
			found[name] = socket
		case !errors.Is(err, fs.ErrNotExist):
			problems = append(problems, err)
		}
	}
	return found, errors.Join(problems...)
}

func identityOf(root plainfile.Root, path string) (identity, error) {
	file, err := root.Socket(path)
	if err != nil {
		return identity{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return identity{}, err
	}
	out := identity{modified: info.ModTime()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		out.inode = stat.Ino
	}
	return out, nil
}

// watch creates the folder and sends a wake-up after changes in it, until ctx ends. If the kernel cannot watch it,
// the periodic scan remains.
func watch(ctx context.Context, dir string, log *zap.Logger, wake wakeup.Signal) {
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer func() { _ = watcher.Close() }()
		err = errors.Join(os.MkdirAll(dir, 0o750), watcher.Add(dir))
	}
	if err != nil {
		log.Warn("CSI drivers are noticed late", zap.Error(err))
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-watcher.Errors: // the periodic scan finds what was lost
		case <-watcher.Events:
			wake.Send()
		}
	}
}
