// Package wholefile replaces small files as a whole: whenever the agent or the machine ends, there is the old content
// or the new one, and the content of a Write that has returned is on disk.
//
// A Write that was cut off leaves a hidden file beside the one it was to replace. It goes with the folder, or by Clear
// where the folder stays.
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

// Write replaces a file, or makes it.
func Write(file string, data []byte, perm fs.FileMode) error {
	// Nothing goes through the machine's folder of temporary files: nobody would find there what is left.
	return renameio.WriteFile(file, data, perm, renameio.WithTempDir(filepath.Dir(file)))
}

// Clear removes from a folder what a Write that was cut off has left of files whose names match the pattern, in the
// form of path.Match. Nobody may be writing one of them meanwhile. A folder that is not there holds nothing.
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

// unfinished says whether a name is one of those under which Write writes: a dot, the file's name and a number.
func unfinished(name, pattern string) bool {
	rest, hidden := strings.CutPrefix(name, ".")
	file := strings.TrimRight(rest, "0123456789")
	matches, err := path.Match(pattern, file)
	return hidden && file != rest && matches && err == nil
}
