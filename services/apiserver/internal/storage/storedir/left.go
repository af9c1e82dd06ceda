package storedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// stampLayout is the time in the name of a store that was put aside.
const stampLayout = "20060102T150405Z"

// HasLeft reports whether the store's member was removed from the store that it shared with others, and returns the
// URLs by which they go on.
func HasLeft(p Paths) (left bool, others []string, err error) {
	text, err := os.ReadFile(p.Left)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, fmt.Errorf("looking whether the store has left others: %w", err)
	}
	return true, strings.Fields(string(text)), nil
}

// MarkLeft notes that it was. When it returns, the mark survives a crash.
func MarkLeft(p Paths, others []string) error {
	if err := replace(p.Left, strings.Join(others, "\n")+"\n"); err != nil {
		return fmt.Errorf("noting that the store has left others: %w", err)
	}
	return nil
}

// Retire puts a store that has left others aside, so that the directory is as new, and returns where it lies now. It is
// nothing where none has left; cut off anywhere, it is finished by the next call.
func Retire(p Paths, now time.Time) (aside string, err error) {
	if left, _, err := HasLeft(p); err != nil || !left {
		return "", err
	}
	if _, err := os.Lstat(p.Store); err == nil {
		aside = p.Store + ".left-" + now.UTC().Format(stampLayout)
		if err := os.Rename(p.Store, aside); err != nil {
			return "", fmt.Errorf("putting the store aside: %w", err)
		}
	}
	for _, file := range []string{p.Identity, p.Left} { // the mark goes last
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return aside, fmt.Errorf("making the store's directory as new: %w", err)
		}
	}
	return aside, nil
}
