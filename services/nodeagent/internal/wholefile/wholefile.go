// Package wholefile replaces small files as a whole: whenever the agent or the machine ends, the file has the old
// or the new content, and after Write has returned the content is on disk.
//
// An interrupted Write leaves a hidden file beside the one that it was to replace. It is removed with the folder,
// or by Clear if the folder stays.
package wholefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// Write replaces or creates a file.
func Write(file string, data []byte, perm fs.FileMode) error {
	// The machine's folder of temporary files is not used: leftovers there would never be found.
	return renameio.WriteFile(file, data, perm, renameio.WithTempDir(filepath.Dir(file)))
}

// Clear removes from a folder what an interrupted Write has left of files whose names match the pattern, in the
// form of path.Match. None of them may be being written meanwhile. A missing folder counts as empty.
func Clear(dir, pattern string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for what interrupted writes have left: %w", err)
	}
	var problems []error
	for _, entry := range entries {
		if entry.Type().IsRegular() && unfinished(entry.Name(), pattern) {
			err := os.Remove(filepath.Join(dir, entry.Name()))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				problems = append(problems, fmt.Errorf("removing what an interrupted write has left: %w", err))
			}
		}
	}
	return errors.Join(problems...)
}

// unfinished reports whether a name is one under which Write writes: a dot, the file's name and a number.
func unfinished(name, pattern string) bool {
	rest, hidden := strings.CutPrefix(name, ".")
	file := strings.TrimRight(rest, "0123456789")
	matches, err := path.Match(pattern, file)
	return hidden && file != rest && matches && err == nil
}
