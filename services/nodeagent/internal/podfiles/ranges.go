package podfiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/plainfile"
	"keelson.dev/services/nodeagent/internal/userns"
	"keelson.dev/services/nodeagent/internal/wholefile"
)

// UserRanges assigns ranges of host IDs to Pods and records them in the Pods' folders, so that a restarted
// nodeagent never gives the IDs of a living Pod to another one. It is safe for concurrent use.
type UserRanges struct {
	root Root
	mu   sync.Mutex
	pool *userns.Pool
}

type rangeRecord struct {
	Version int    `json:"version"`
	First   uint32 `json:"first"`
	Length  uint32 `json:"length"`
}

// OpenUserRanges reads the records of all Pods on disk. Records that cannot be read or contradict each other are
// reported together as an error beside usable ranges: their Pods get new IDs when they start again.
func OpenUserRanges(root Root, whole userns.Range) (*UserRanges, error) {
	ranges := &UserRanges{root: root, pool: userns.NewPool(whole)}
	uids, err := root.List()
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, uid := range uids {
		record, err := ranges.load(uid)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			problems = append(problems, err)
		default:
			problems = append(problems, ranges.pool.Restore(uid, userns.Range{First: record.First,
				Length: record.Length}))
		}
	}
	return ranges, errors.Join(problems...)
}

// Assign returns the Pod's range, after writing it to disk. The Pod's folder must exist.
func (u *UserRanges) Assign(uid types.UID) (*userns.Range, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	assigned, err := u.pool.Assign(uid)
	if err != nil {
		return nil, err
	}
	if record, err := u.load(uid); err == nil && record.First == assigned.First {
		return &assigned, nil
	}
	data, err := json.Marshal(rangeRecord{Version: 1, First: assigned.First, Length: assigned.Length})
	if err == nil {
		err = failpoint.Around("nodeagent/record.write", func() error {
			return wholefile.Write(u.file(uid), data, 0o600)
		})
	}
	if err != nil {
		u.pool.Release(uid)
		return nil, fmt.Errorf("recording the pod's user namespace: %w", err)
	}
	return &assigned, nil
}

// Release frees the range of a Pod of which nothing runs any more; its record is removed with its folder.
func (u *UserRanges) Release(uid types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pool.Release(uid)
}

func (u *UserRanges) file(uid types.UID) string { return filepath.Join(u.root.Pod(uid), "userns.json") }

// maxRecord is more than the size of any record.
const maxRecord = 1 << 10

func (u *UserRanges) load(uid types.UID) (rangeRecord, error) {
	var record rangeRecord
	file, err := plainfile.Root(u.root.Dir).Open(u.file(uid))
	if err != nil {
		return record, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxRecord))
	if err != nil {
		return record, fmt.Errorf("reading %s: %w", u.file(uid), err)
	}
	if err := json.Unmarshal(data, &record); err != nil {
		return record, fmt.Errorf("reading %s: %w", u.file(uid), err)
	}
	if record.Version != 1 {
		return record, fmt.Errorf("reading %s: version %d is not known", u.file(uid), record.Version)
	}
	return record, nil
}
