// Package podfiles defines the paths of a Pod's files on the host and creates the files that do not belong to a volume.
// A Pod's folder contains all that is removed with the Pod; its logs are elsewhere, so that they can outlive it.
//
//	<Dir>/pods/<uid>/volumes/<kind>/<volume>        contents of a volume
//	<Dir>/pods/<uid>/subpaths/<container>/<index>   bind mounts of parts of volumes
//	<Dir>/pods/<uid>/containers/<container>/<n>     termination message of the n-th instance
//	<Dir>/pods/<uid>/etc-hosts                      /etc/hosts of all containers
//	<Dir>/pods/<uid>/userns.json                    the Pod's range of host IDs
//	<LogDir>/<namespace>_<name>_<uid>/<container>/<n>.log
//
// Paths are made from Pod UIDs, container and volume names, which the API server has validated: none contains a slash.
package podfiles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/containerconfig"
	"keelson.dev/services/nodeagent/internal/plainfile"
)

// Root is where a nodeagent keeps the files of its Pods.
type Root struct {
	// Dir is the nodeagent's own folder, LogDir that of the container logs. Both are absolute.
	Dir, LogDir string
}

// Pod returns the folder of one Pod.
func (r Root) Pod(uid types.UID) string { return filepath.Join(r.pods(), string(uid)) }

// Volume returns the folder of one volume.
func (r Root) Volume(uid types.UID, kind, name string) string {
	return filepath.Join(r.Pod(uid), "volumes", kind, name)
}

// SubPath returns where the part of a volume for the container's mount number index is bound.
func (r Root) SubPath(uid types.UID, container string, index int) string {
	return filepath.Join(r.SubPaths(uid), container, strconv.Itoa(index))
}

// SubPaths returns the folder of all SubPath paths of a Pod.
func (r Root) SubPaths(uid types.UID) string { return filepath.Join(r.Pod(uid), "subpaths") }

// Hosts returns the file that is /etc/hosts in the Pod.
func (r Root) Hosts(uid types.UID) string { return filepath.Join(r.Pod(uid), "etc-hosts") }

// TerminationLog returns the file into which an instance writes its termination message.
func (r Root) TerminationLog(uid types.UID, container string, attempt uint32) string {
	return filepath.Join(r.Pod(uid), "containers", container, strconv.Itoa(int(attempt)))
}

// Logs returns the folder of the Pod's logs.
func (r Root) Logs(pod *corev1.Pod) string {
	return filepath.Join(r.LogDir, containerconfig.LogDir(pod))
}

// ContainerLog returns the log file of one instance.
func (r Root) ContainerLog(pod *corev1.Pod, container string, attempt uint32) string {
	return filepath.Join(r.Logs(pod), containerconfig.LogFile(container, attempt))
}

func (r Root) pods() string { return filepath.Join(r.Dir, "pods") }

// List returns the Pods that have a folder, also those that the API has forgotten.
func (r Root) List() ([]types.UID, error) {
	entries, err := os.ReadDir(r.pods())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing pod folders: %w", err)
	}
	var uids []types.UID
	for _, entry := range entries {
		if entry.IsDir() {
			uids = append(uids, types.UID(entry.Name()))
		}
	}
	return uids, nil
}

// Make creates the folders of a Pod and of its logs. It is idempotent.
func (r Root) Make(pod *corev1.Pod) error {
	if err := os.MkdirAll(r.Pod(pod.UID), 0o750); err != nil {
		return fmt.Errorf("making the pod's folder: %w", err)
	}
	if err := os.MkdirAll(r.Logs(pod), 0o755); err != nil {
		return fmt.Errorf("making the pod's log folder: %w", err)
	}
	return nil
}

// MakeLogs creates the folder of one container's logs, which the runtime requires, and removes anything but a file
// at the path of the next instance's log: the runtime would open it. It is idempotent.
func (r Root) MakeLogs(pod *corev1.Pod, container string, attempt uint32) error {
	path := r.ContainerLog(pod, container, attempt)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making the log folder of container %s: %w", container, err)
	}
	dir, err := plainfile.Root(r.LogDir).Folder(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("opening the log folder of container %s: %w", container, err)
	}
	defer dir.Close()
	if info, err := dir.Lstat(filepath.Base(path)); err != nil || info.Mode().IsRegular() {
		return nil
	}
	if err := dir.RemoveAll(filepath.Base(path)); err != nil {
		return fmt.Errorf("removing what stands in place of a log of container %s: %w", container, err)
	}
	return nil
}

// RemoveLogs removes the logs of all instances of a Pod, of which only the UID may be known. It is idempotent.
func (r Root) RemoveLogs(pod *corev1.Pod) error {
	entries, err := os.ReadDir(r.LogDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for the pod's logs: %w", err)
	}
	var problems []error
	for _, entry := range entries {
		if uid, ok := loggedBy(entry.Name()); ok && uid == pod.UID {
			if err := os.RemoveAll(filepath.Join(r.LogDir, entry.Name())); err != nil {
				problems = append(problems, fmt.Errorf("removing the pod's logs: %w", err))
			}
		}
	}
	return errors.Join(problems...)
}

// Logged returns the Pods that have a folder of logs, also those that the API has forgotten.
func (r Root) Logged() ([]types.UID, error) {
	entries, err := os.ReadDir(r.LogDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the folders of logs: %w", err)
	}
	var uids []types.UID
	for _, entry := range entries {
		if uid, ok := loggedBy(entry.Name()); ok && entry.IsDir() {
			uids = append(uids, uid)
		}
	}
	return uids, nil
}

// loggedBy returns the Pod of a folder of logs: <namespace>_<name>_<uid>, none of which contains an underscore.
func loggedBy(folder string) (types.UID, bool) {
	parts := strings.Split(folder, "_")
	if len(parts) != 3 || parts[2] == "" {
		return "", false
	}
	return types.UID(parts[2]), true
}

// WriteHosts writes the Pod's /etc/hosts. The file is mounted into containers, so it is written in place, and only when
// it changes.
func (r Root) WriteHosts(uid types.UID, contents []byte) (path string, err error) {
	path = r.Hosts(uid)
	file, err := plainfile.Root(r.Dir).OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return "", fmt.Errorf("opening the pod's hosts file: %w", err)
	}
	defer file.Close()
	// Containers may write to it: a file of another length is not read.
	if info, err := file.Stat(); err == nil && info.Size() == int64(len(contents)) {
		if old, err := io.ReadAll(io.LimitReader(file, info.Size())); err == nil && bytes.Equal(old, contents) {
			return path, nil
		}
	}
	if err := file.Truncate(0); err != nil {
		return "", fmt.Errorf("emptying the pod's hosts file: %w", err)
	}
	if _, err := file.WriteAt(contents, 0); err != nil {
		return "", fmt.Errorf("writing the pod's hosts file: %w", err)
	}
	if err := file.Chmod(0o644); err != nil {
		return "", fmt.Errorf("opening up the pod's hosts file: %w", err)
	}
	return path, nil
}

// MakeTerminationLog creates the empty file for an instance's termination message, writable for any user.
func (r Root) MakeTerminationLog(uid types.UID, container string, attempt uint32) (path string, err error) {
	path = r.TerminationLog(uid, container, attempt)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return "", fmt.Errorf("making the folder of termination messages: %w", err)
	}
	file, err := plainfile.Root(r.Dir).OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return "", fmt.Errorf("making the termination message file: %w", err)
	}
	defer file.Close()
	if err := file.Chmod(0o666); err != nil {
		return "", fmt.Errorf("opening up the termination message file: %w", err)
	}
	return path, nil
}

// The limits of termination messages: of one, and of all containers of a Pod together, since its status contains
// them.
const (
	maxTerminationMessage  = 4096
	maxTerminationMessages = 12 << 10
)

// MaxTerminationMessage returns how much of a termination message is kept for each of that many containers.
func MaxTerminationMessage(containers int) int {
	return min(maxTerminationMessage, maxTerminationMessages/max(containers, 1))
}

// ReadTerminationMessage returns what an instance left in its file, cut at limit bytes. A missing file is an empty
// message.
func (r Root) ReadTerminationMessage(path string, limit int) (string, error) {
	if path == "" {
		return "", nil
	}
	file, err := plainfile.Root(r.Dir).Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("opening the termination message: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, int64(limit)))
	if err != nil {
		return "", fmt.Errorf("reading the termination message: %w", err)
	}
	return wholeRunes(text, limit), nil
}

// wholeRunes drops a character that was cut at the end.
func wholeRunes(text []byte, limit int) string {
	if len(text) < limit {
		return string(text)
	}
	for cut := len(text) - 1; cut >= 0 && cut > len(text)-utf8.UTFMax; cut-- {
		if utf8.RuneStart(text[cut]) {
			if !utf8.FullRune(text[cut:]) {
				return string(text[:cut])
			}
			break
		}
	}
	return string(text)
}
