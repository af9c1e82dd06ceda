// Package ages gives the files of a fresh clone ages that follow from what is in them. The go command takes the result
// of a test from its cache only if the files that the test reads are as old as they were, and a clone is always new.
package ages

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

var (
	// oldest and span are the range of the ages: long past, because the go command does not trust new files.
	oldest = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	span   = uint64(20 * 365 * 24 * time.Hour / time.Second)
)

// Settle sets the modification times of the files and folders below root, but not of links. It skips bin/, which
// is not cloned, and .git.
func Settle(root string) error {
	folders := map[string][]byte{}
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == "bin", entry.Name() == ".git":
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		// What a folder lists are the names in it.
		folders[path.Dir(name)] = append(folders[path.Dir(name)], entry.Name()+"\x00"...)
		switch {
		case entry.IsDir():
			folders[name] = nil
			return nil
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		return set(root, name, content)
	})
	for name, entries := range folders {
		err = errors.Join(err, set(root, name, entries))
	}
	return err
}

func set(root, name string, content []byte) error {
	sum := sha256.Sum256(content)
	age := oldest.Add(time.Duration(binary.BigEndian.Uint64(sum[:])%span) * time.Second)
	if err := os.Chtimes(filepath.Join(root, name), age, age); err != nil {
		return fmt.Errorf("setting the age of %s: %w", name, err)
	}
	return nil
}
