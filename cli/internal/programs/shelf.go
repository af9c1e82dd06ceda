package programs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Shelf is where several builds of one program lie, named by their sums.
type Shelf struct {
	// Dir is the folder, Prefix what stands before the sums.
	Dir, Prefix string
}

// sumShape matches what Sum returns.
var sumShape = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Path returns where the build of a sum lies.
func (s Shelf) Path(sum string) string { return filepath.Join(s.Dir, s.Prefix+sum) }

// Sums returns the sums of the builds that lie there whole, in order.
func (s Shelf) Sums() ([]string, error) {
	names, err := s.names()
	var sums []string
	for _, name := range names {
		if sum := strings.TrimPrefix(name, s.Prefix); sumShape.MatchString(sum) {
			sums = append(sums, sum)
		}
	}
	return sums, err
}

// Clear removes all builds but the one of a sum, and what is left of copies that were not completed.
func (s Shelf) Clear(but string) error {
	names, failed := s.names()
	for _, name := range names {
		sum := strings.TrimSuffix(strings.TrimPrefix(name, s.Prefix), partSuffix)
		if !sumShape.MatchString(sum) || name == s.Prefix+but {
			continue
		}
		if err := os.Remove(filepath.Join(s.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("removing a program: %w", err))
		}
	}
	return failed
}

func (s Shelf) names() ([]string, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing programs: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if entry.Type().IsRegular() && strings.HasPrefix(entry.Name(), s.Prefix) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}
