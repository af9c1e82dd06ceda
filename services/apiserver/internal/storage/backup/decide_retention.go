package backup

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"
)

const (
	// recordSuffix and partialSuffix follow a snapshot's name.
	recordSuffix, partialSuffix = ".json", ".partial"
	stampLayout                 = "20060102T150405Z"
)

// ownName is a name that a snapshot in a folder has.
var ownName = regexp.MustCompile(`^store-[0-9]{8}T[0-9]{6}Z\.snapshot$`)

// nameAt is the name of a snapshot that is taken into a folder.
func nameAt(now time.Time) string {
	return fmt.Sprintf("store-%s.snapshot", now.UTC().Format(stampLayout))
}

// Record stands beside a snapshot and says what was taken.
type Record struct {
	// File is the snapshot's name, Bytes how long it is.
	File  string    `json:"file"`
	Bytes int64     `json:"bytes"`
	Taken time.Time `json:"taken"`
	// Store tells the stores apart whose snapshots are in one folder.
	Store string `json:"store"`
	Content
}

// kept is a file in the folder, with the record beside it if that can be read.
type kept struct {
	name   string
	bytes  int64
	record *Record
}

// expired returns the names of the snapshots that may go so that the newest `keep` of the store stay. Only what a
// snapshot of this store made is among them: by its name, and by a record beside it that means this very file. The one
// that was just made stays, whatever the clock says.
func expired(files []kept, store, made string, keep int) []string {
	var own []string
	for _, f := range files {
		if f.name != made && ownName.MatchString(f.name) && f.record != nil && f.record.File == f.name &&
			f.record.Bytes == f.bytes && f.record.Store == store {
			own = append(own, f.name)
		}
	}
	slices.SortFunc(own, func(a, b string) int { return cmp.Compare(b, a) }) // the newest first
	if keep < 1 || len(own) < keep {
		return nil
	}
	return own[keep-1:]
}
