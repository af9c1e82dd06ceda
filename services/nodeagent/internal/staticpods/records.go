package staticpods

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/wholefile"
)

// recordVersion is the version of the records that are written and read.
const recordVersion = 1

// record is what a later agent must know of a static Pod, so that the Pod runs on, or ends as gracefully, even if its
// file is gone or damaged by then.
type record struct {
	Version int    `json:"version"`
	File    string `json:"file"`
	// StartedAt is when the node admitted the Pod.
	StartedAt metav1.Time `json:"startedAt"`
	// Pod is complete, without its status.
	Pod *corev1.Pod `json:"pod"`
}

// records is a directory with a small file for each static Pod.
type records string

// save replaces the record of a Pod. After a crash either the old or the new one exists.
func (r records) save(i Instance, startedAt metav1.Time) error {
	pod := *i.Pod
	pod.Status = corev1.PodStatus{}
	data, err := json.Marshal(record{Version: recordVersion, File: i.File, StartedAt: startedAt, Pod: &pod})
	if err != nil {
		return fmt.Errorf("encoding the record of the static pod %s: %w", nameOf(i.Pod), err)
	}
	err = failpoint.Around("nodeagent/staticpod.save", func() error {
		if err := os.MkdirAll(string(r), 0o700); err != nil {
			return err
		}
		return wholefile.Write(r.file(i.Pod.UID), data, 0o600)
	})
	if err != nil {
		return fmt.Errorf("writing the record of the static pod %s: %w", nameOf(i.Pod), err)
	}
	return nil
}

// remove forgets a Pod. It is idempotent.
func (r records) remove(uid types.UID) error {
	if err := os.Remove(r.file(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the record of the static pod %s: %w", uid, err)
	}
	return nil
}

var uidForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// load returns all records, and removes what an earlier agent was writing when it was killed. A record that cannot be
// used comes as an error: what the node has of its Pod is taken down, unless the Pod's file is still there.
func (r records) load() (all []record, problems error) {
	if err := wholefile.Clear(string(r), "*"+suffix); err != nil {
		problems = fmt.Errorf("opening the records of static pods: %w", err)
	}
	entries, err := os.ReadDir(string(r))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the records of static pods: %w", err)
	}
	for _, entry := range entries {
		uid, is := strings.CutSuffix(entry.Name(), suffix)
		if !is || !uidForm.MatchString(uid) {
			continue
		}
		one, err := r.read(types.UID(uid))
		if err != nil {
			problems = errors.Join(problems, fmt.Errorf("reading the record of the static pod %s: %w", uid, err))
			continue
		}
		all = append(all, one)
	}
	return all, problems
}

func (r records) read(uid types.UID) (record, error) {
	data, err := os.ReadFile(r.file(uid))
	if err != nil {
		return record{}, err
	}
	var one record
	if err := json.Unmarshal(data, &one); err != nil {
		return record{}, err
	}
	switch {
	case one.Version != recordVersion:
		return record{}, fmt.Errorf("version %d is not known, only %d is", one.Version, recordVersion)
	case one.Pod == nil || one.Pod.UID != uid:
		return record{}, errors.New("it holds another Pod")
	}
	return one, check(one.Pod)
}

const suffix = ".json"

func (r records) file(uid types.UID) string { return filepath.Join(string(r), string(uid)+suffix) }
