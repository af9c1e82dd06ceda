package backup

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

// install gives the new store its name. One that was there has the name kept from the same moment on. Where the
// directory was another mesh's it is no more: an apiserver takes over of which mesh its store says that it is.
func install(paths storedir.Paths, staging, kept string, forget bool) error {
	dir, err := os.Open(filepath.Dir(paths.Store))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	for _, step := range installSteps(paths, staging, kept, forget) {
		if err := failpoint.Around("apiserver/restore.install", func() error {
			if err := step(); err != nil {
				return err
			}
			return dir.Sync()
		}); err != nil {
			return fmt.Errorf("putting the restored store in place of %s: %w", paths.Store, err)
		}
	}
	return nil
}

func installSteps(paths storedir.Paths, staging, kept string, forget bool) []func() error {
	var steps []func() error
	identity := func() error { return os.Remove(paths.Identity) }
	if kept == "" {
		steps = append(steps, func() error { return rename(staging, paths.Store, unix.RENAME_NOREPLACE) })
		if forget { // not before: an apiserver that finds neither store nor identity begins an empty mesh
			steps = append(steps, identity)
		}
		return steps
	}
	if forget { // not after: with the old store's identity it would refuse the new one
		steps = append(steps, identity)
	}
	return append(steps,
		func() error { return rename(staging, kept, unix.RENAME_NOREPLACE) },
		func() error { return rename(kept, paths.Store, unix.RENAME_EXCHANGE) })
}

func rename(from, to string, how uint) error {
	if err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, how); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// syncTree has all files of a folder survive a crash.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		return file.Sync()
	})
}
