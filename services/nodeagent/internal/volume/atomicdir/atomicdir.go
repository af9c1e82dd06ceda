// Package atomicdir writes a set of files so that readers see all of the old or all of the new ones.
//
// The files are in a folder of their own, named after the time of writing; "..data" is a symbolic link to it, and each
// top-level name is a link into "..data":
//
//	..2026_01_31_10_00_00.123456789/  the files
//	..data -> ..2026_01_31_10_00_00.123456789
//	name   -> ..data/name
//
// Replacing "..data" is one rename. The order of the steps is: write the files, add names, swap, remove names, remove
// the old files. A crash between any two leaves the old or the new contents, and the next Write removes the rest.
package atomicdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"keelson.dev/kit/failpoint"
)

const (
	dataLink   = "..data"
	nextLink   = "..data_tmp"
	stampStyle = "..2006_01_02_15_04_05.000000000"
)

// File is the contents of one file.
type File struct {
	Data []byte
	Mode fs.FileMode
	// UID is the owner; nil means the agent's user.
	UID *int64
}

// Files are the files of a folder by their relative path.
type Files map[string]File

// Write makes dir hold exactly these files, and reports whether it changed anything that can be read. A group of at
// least 0 owns the files and may read them. dir must exist, and only the agent may write to it.
func Write(dir string, files Files, group int64) (changed bool, err error) {
	files = files.inShortForm().forGroup(group)
	if err := files.check(); err != nil {
		return false, err
	}
	current, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("reading the link to the current files: %w", err)
	}
	changed = current == "" || !files.sameAs(filepath.Join(dir, current))
	if changed {
		if err := swap(dir, &current, files, group); err != nil {
			return false, err
		}
	} else if err := addNames(dir, files); err != nil {
		return false, err
	}
	return changed, clear(dir, current, files)
}

// swap writes the files into a new folder and makes it the current one.
func swap(dir string, current *string, files Files, group int64) error {
	next, err := writeAll(dir, files, group)
	if err != nil {
		return err
	}
	if err := addNames(dir, files); err != nil {
		return err
	}
	if err := failpoint.Inject("nodeagent/atomicdir.swap.before"); err != nil {
		return err
	}
	temporary := filepath.Join(dir, nextLink)
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the link of an interrupted write: %w", err)
	}
	if err := os.Symlink(next, temporary); err != nil {
		return fmt.Errorf("linking the new files: %w", err)
	}
	if err := failpoint.Inject("nodeagent/atomicdir.swap.between"); err != nil {
		return err
	}
	if err := os.Rename(temporary, filepath.Join(dir, dataLink)); err != nil {
		return fmt.Errorf("swapping the files: %w", err)
	}
	*current = next
	return failpoint.Inject("nodeagent/atomicdir.swap.after")
}

// writeAll creates a new folder with the files and returns its name.
func writeAll(dir string, files Files, group int64) (string, error) {
	next := time.Now().UTC().Format(stampStyle)
	root := filepath.Join(dir, next)
	if err := makeFolder(root, group); err != nil {
		return "", err
	}
	for _, path := range files.sorted() {
		if err := failpoint.Inject("nodeagent/atomicdir.file.before"); err != nil {
			return "", err
		}
		if err := makeParents(root, path, group); err != nil {
			return "", err
		}
		if err := writeFile(filepath.Join(root, path), files[path], group); err != nil {
			return "", err
		}
	}
	return next, nil
}

func makeParents(root, path string, group int64) error {
	parent := filepath.Dir(path)
	if parent == "." {
		return nil
	}
	if err := makeParents(root, parent, group); err != nil {
		return err
	}
	err := makeFolder(filepath.Join(root, parent), group)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func makeFolder(path string, group int64) error {
	if err := os.Mkdir(path, 0o755); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	mode := fs.FileMode(0o755)
	if group >= 0 {
		mode |= fs.ModeSetgid | 0o020
		if err := os.Lchown(path, -1, int(group)); err != nil {
			return fmt.Errorf("giving a folder to its group: %w", err)
		}
	}
	if err := os.Chmod(path, mode); err != nil {
		return fmt.Errorf("setting the mode of a folder: %w", err)
	}
	return nil
}

// writeFile sets the owner before the mode, because changing the owner clears bits of the mode.
func writeFile(path string, file File, group int64) error {
	if err := os.WriteFile(path, file.Data, 0o600); err != nil {
		return fmt.Errorf("writing a file: %w", err)
	}
	owner := -1
	if file.UID != nil {
		owner = int(*file.UID)
	}
	if owner >= 0 || group >= 0 {
		if err := os.Lchown(path, owner, int(group)); err != nil {
			return fmt.Errorf("giving a file to its owner: %w", err)
		}
	}
	if err := os.Chmod(path, file.Mode); err != nil {
		return fmt.Errorf("setting the mode of a file: %w", err)
	}
	return nil
}

// addNames creates the links of all top-level names. Until the swap those of new files lead nowhere.
func addNames(dir string, files Files) error {
	for name := range files.topLevel() {
		err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("linking a file: %w", err)
		}
	}
	return failpoint.Inject("nodeagent/atomicdir.names.after")
}

// clear removes obsolete names, and all folders but the current one.
func clear(dir, current string, files Files) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking for old files: %w", err)
	}
	wanted := files.topLevel()
	for _, entry := range entries {
		name := entry.Name()
		path := filepath.Join(dir, name)
		switch {
		case name == dataLink, name == current, wanted[name]:
			continue
		case strings.HasPrefix(name, ".."):
			err = os.RemoveAll(path)
		case isOurLink(path):
			err = os.Remove(path)
		}
		if err == nil {
			err = failpoint.Inject("nodeagent/atomicdir.clear.after")
		}
		if err != nil {
			return fmt.Errorf("removing old files: %w", err)
		}
	}
	return nil
}

func isOurLink(path string) bool {
	target, err := os.Readlink(path)
	return err == nil && strings.HasPrefix(target, dataLink+"/")
}
