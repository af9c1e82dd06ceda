package atomicdir

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// maxPath is the maximum length of a file's path.
const maxPath = 4096

// MaxSize bounds the bytes of all files of one folder together: a Pod may name one object any number of times.
const MaxSize = 32 << 20

// CheckSize returns an error if the files together are larger than MaxSize.
func (f Files) CheckSize() error {
	size := 0
	for _, file := range f {
		size += len(file.Data)
	}
	if size > MaxSize {
		return fmt.Errorf("the files have more than %d bytes together", MaxSize)
	}
	return nil
}

// inShortForm returns the files with clean paths: without empty elements, "a//b", or elements for the folder
// itself, "./a".
func (f Files) inShortForm() Files {
	out := make(Files, len(f))
	for path, file := range f {
		if path != "" && !slices.Contains(strings.Split(path, "/"), "..") {
			path = filepath.Clean(path)
		}
		out[path] = file
	}
	return out
}

// check returns an error if the files are too large, or a path would leave the folder or hide its own entries.
func (f Files) check() error {
	if err := f.CheckSize(); err != nil {
		return err
	}
	for path := range f {
		switch {
		case path == "":
			return fmt.Errorf("invalid path: must not be empty: %q", path)
		case strings.HasPrefix(path, "/"):
			return fmt.Errorf("invalid path: must be relative path: %s", path)
		case len(path) > maxPath:
			return fmt.Errorf("invalid path: must be less than or equal to %d characters", maxPath)
		case path == ".", slices.Contains(strings.Split(path, "/"), ".."):
			return fmt.Errorf("invalid path: must not contain '..': %s", path)
		case strings.HasPrefix(path, ".."):
			return fmt.Errorf("invalid path: must not start with '..': %s", path)
		}
		for parent := filepath.Dir(path); parent != "."; parent = filepath.Dir(parent) {
			if _, ok := f[parent]; ok {
				return fmt.Errorf("invalid path: %s lies in %s, which is a file", path, parent)
			}
		}
	}
	return nil
}

// forGroup lets the group read all files.
func (f Files) forGroup(group int64) Files {
	if group < 0 {
		return f
	}
	out := make(Files, len(f))
	for path, file := range f {
		file.Mode |= 0o440
		out[path] = file
	}
	return out
}

func (f Files) sorted() []string { return slices.Sorted(maps.Keys(f)) }

// topLevel returns the first elements of all paths.
func (f Files) topLevel() map[string]bool {
	names := map[string]bool{}
	for path := range f {
		name, _, _ := strings.Cut(path, "/")
		names[name] = true
	}
	return names
}

// sameAs reports whether a folder holds exactly these files with their modes and owners.
func (f Files) sameAs(dir string) bool {
	found := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		file, ok := f[relative]
		if !ok || !file.sameAs(path) {
			return fs.ErrNotExist
		}
		found++
		return nil
	})
	return err == nil && found == len(f)
}

func (f File) sameAs(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != f.Mode || info.Size() != int64(len(f.Data)) {
		return false
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && f.UID != nil && int64(stat.Uid) != *f.UID {
		return false
	}
	data, err := os.ReadFile(path)
	return err == nil && bytes.Equal(data, f.Data)
}
