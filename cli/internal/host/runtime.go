package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// RemoveShimSockets removes the sockets of the shims that a containerd, which has ended, kept in its state folder.
// Shims that were killed leave them behind, in a folder that all containerds of the machine share.
func RemoveShimSockets(state string) error {
	files, err := filepath.Glob(filepath.Join(state, "io.containerd.runtime.v2.task", "*", "*", "bootstrap.json"))
	if err != nil {
		return fmt.Errorf("looking for shims: %w", err)
	}
	var failed error
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("reading a shim's address: %w", err))
			continue
		}
		var shim struct {
			Address string `json:"address"`
		}
		if err := json.Unmarshal(content, &shim); err != nil {
			failed = errors.Join(failed, fmt.Errorf("reading %s: %w", file, err))
			continue
		}
		if socket, ok := strings.CutPrefix(shim.Address, "unix://"); ok {
			failed = errors.Join(failed, RemoveSocket(socket))
		}
	}
	return failed
}

// RemoveSocket removes a socket and leaves any other kind of file.
func RemoveSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return fmt.Errorf("removing a shim's socket: %w", err)
	}
	return nil
}

// Empty removes everything in a folder. A missing folder counts as empty.
func Empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("emptying %s: %w", dir, err)
	}
	var failed error
	for _, entry := range entries {
		failed = errors.Join(failed, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return failed
}
