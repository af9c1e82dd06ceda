// Package checkpoint keeps on disk what an agent that starts can learn neither from the API nor from the container
// runtime: where the back-off of a container began, which postStart hooks have finished, why the node ended a Pod,
// the sizes of a resized Pod, and which instances are from before a restart of all containers. It keeps one small
// file per Pod, and most Pods need none.
package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/sizes"
	"keelson.dev/services/nodeagent/internal/wholefile"
)

// version is that of the records that are written. Records of all versions from the oldest on are read: a new version
// only adds fields, or Load converts. One of a later version counts as unknown.
//
//	1  Streaks, Hooked
//	2  Ended
//	3  Resize
//	4  Ended.Disruption
//	5  RestartAll
const (
	oldest  = 1
	version = 5
)

// Record is what is kept of one Pod.
type Record struct {
	Version int `json:"version"`
	// Streaks holds, by container name, the attempt with which its back-off last began, plus one for each later
	// restart that does not count.
	Streaks map[string]uint32 `json:"streaks,omitempty"`
	// Hooked lists the IDs of instances whose postStart hook has finished.
	Hooked []string `json:"hooked,omitempty"`
	// Ended is why the node ended the Pod after admitting it; nil if it did not.
	Ended *Ended `json:"ended,omitempty"`
	// Resize is kept of a Pod whose desired size changed; nil if it never did.
	Resize *Resize `json:"resize,omitempty"`
	// RestartAll is the last restart of all containers; nil if there was none.
	RestartAll *RestartAll `json:"restartAll,omitempty"`
}

// RestartAll is the last restart of all containers of a Pod.
type RestartAll struct {
	// Container is the one whose end required it, ExitCode its exit code.
	Container string `json:"container"`
	ExitCode  int32  `json:"exitCode"`
	// Last holds, by container name, the attempt of the last instance before the restart.
	Last map[string]uint32 `json:"last"`
	// Stopped lists the containers whose last instance was still running.
	Stopped []string `json:"stopped,omitempty"`
}

// Resize is how far the resizes of a Pod have progressed.
type Resize struct {
	// Allocated is the size that the node has granted.
	Allocated sizes.Size `json:"given"`
	// Cgroup is the size that the Pod's cgroup has; nil if the Pod was never resized.
	Cgroup *sizes.Size `json:"standing,omitempty"`
	// Updated maps the IDs of instances that were resized since their creation to their sizes.
	Updated map[string]sizes.Instance `json:"updated,omitempty"`
	// Restarted lists the instances that end for a restart at another size.
	Restarted []string `json:"restarted,omitempty"`
}

// Ended is why a node ended a Pod.
type Ended struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Grace bounds the time that its containers may take to stop, in nanoseconds; 0 leaves them their own grace
	// period.
	Grace time.Duration `json:"grace,omitempty"`
	// Disruption means that the node ended the Pod for its own sake.
	Disruption bool `json:"disruption,omitempty"`
}

// Empty reports whether the record has nothing to keep.
func (r Record) Empty() bool {
	return len(r.Streaks) == 0 && len(r.Hooked) == 0 && r.Ended == nil && r.Resize == nil && r.RestartAll == nil
}

// Store is a directory of records.
type Store struct {
	dir string
}

// Open creates the directory if it is missing, and removes what an earlier agent was writing when it was killed.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of Pod records: %w", err)
	}
	if err := wholefile.Clear(dir, "*"+suffix); err != nil {
		return nil, fmt.Errorf("opening the Pod records: %w", err)
	}
	return &Store{dir: dir}, nil
}

// Load returns the record of a Pod. A missing one is empty. A damaged one, or one of an unknown version, is empty
// too and comes with an error that says so: it must never keep a Pod from running.
func (s *Store) Load(uid types.UID) (Record, error) {
	data, err := os.ReadFile(s.file(uid))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, nil
	}
	if err != nil {
		return Record{}, fmt.Errorf("reading the record of pod %s: %w", uid, err)
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("reading the record of pod %s: %w", uid, err)
	}
	if r.Version < oldest || r.Version > version {
		return Record{}, fmt.Errorf("reading the record of pod %s: version %d is not known, only %d to %d are",
			uid, r.Version, oldest, version)
	}
	return r, nil
}

// Save replaces the record of a Pod. After a crash either the old or the new one exists.
func (s *Store) Save(uid types.UID, r Record) error {
	r.Version = version
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding the record of pod %s: %w", uid, err)
	}
	if err := failpoint.Around("nodeagent/checkpoint.save", func() error {
		return wholefile.Write(s.file(uid), data, 0o600)
	}); err != nil {
		return fmt.Errorf("writing the record of pod %s: %w", uid, err)
	}
	return nil
}

// Remove forgets a Pod. It is idempotent.
func (s *Store) Remove(uid types.UID) error {
	if err := os.Remove(s.file(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the record of pod %s: %w", uid, err)
	}
	return nil
}

// Pods returns the UIDs of all Pods that have a record.
func (s *Store) Pods() ([]types.UID, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("listing the records of pods: %w", err)
	}
	var out []types.UID
	for _, e := range entries {
		if uid, ok := strings.CutSuffix(e.Name(), suffix); ok && !strings.HasPrefix(uid, ".") {
			out = append(out, types.UID(uid))
		}
	}
	return out, nil
}

const suffix = ".json"

func (s *Store) file(uid types.UID) string { return filepath.Join(s.dir, string(uid)+suffix) }
