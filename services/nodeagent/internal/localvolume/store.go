// Package localvolume keeps the folders of the volumes that this node has created for claims, and records which Pods of
// the node use which volume.
//
//	<Dir>/local-volumes/<handle>                                  what Pods have written
//	<Dir>/local-volumes/.removing-<handle>                        a folder that is being removed
//	<Dir>/local-volumes-made/<handle>                             exists if the folder was created once
//	<Dir>/pods/<uid>/volumes/persistentVolumeClaim/<volume>       what a Pod uses; removed with the Pod's folder
//
// All of it is on disk: an agent that starts carries on where another was killed. A folder that was created and is
// missing is never created again, so that a Pod does not mistake an empty folder for its data.
package localvolume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/podfiles"
)

// removing begins the names of folders that are being removed.
const removing = ".removing-"

// ErrInUse is wrapped by the error of a removal that has to wait for a Pod.
var ErrInUse = errors.New("a pod on this node still uses the volume")

// Mounts is the part of volume.Mounter that this package needs.
type Mounts interface {
	Unmount(target string) error
	Under(dir string) ([]string, error)
}

// Store holds the folders of one node. Its methods are safe for concurrent use, except Remove and Sweep.
type Store struct {
	files  podfiles.Root
	mounts Mounts
	mu     sync.Mutex // held while uses are decided
}

// NewStore returns the Store of a node.
func NewStore(files podfiles.Root, mounts Mounts) *Store { return &Store{files: files, mounts: mounts} }

// Path returns the folder of a volume.
func (s *Store) Path(handle string) string { return filepath.Join(s.folders(), handle) }

func (s *Store) folders() string { return filepath.Join(s.files.Dir, "local-volumes") }

func (s *Store) marker(handle string) string {
	return filepath.Join(s.files.Dir, "local-volumes-made", handle)
}

// ensure creates the folder of a volume if it has never been created.
func (s *Store) ensure(handle string) error {
	for _, dir := range []string{s.folders(), filepath.Dir(s.marker(handle))} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("making the folder of local volumes: %w", err)
		}
	}
	found, err := s.look(handle)
	if err != nil {
		return err
	}
	if !found {
		if err := failpoint.Around("nodeagent/localvolume.make", func() error { return s.make(handle) }); err != nil {
			return err
		}
	}
	return s.mark(handle)
}

// look reports whether the folder exists. A folder that disappeared is an error, and so is anything but a folder.
func (s *Store) look(handle string) (found bool, err error) {
	info, err := os.Lstat(s.Path(handle))
	switch {
	case err == nil && info.IsDir():
		return true, nil
	case err == nil:
		return false, fmt.Errorf("%s is no folder: the volume's data is lost", s.Path(handle))
	case !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("looking at the volume's folder: %w", err)
	}
	_, err = os.Lstat(s.marker(handle))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking whether the volume's folder was made: %w", err)
	}
	return false, fmt.Errorf("the folder %s was made once and is gone: put its data back, or delete the claim",
		s.Path(handle))
}

// make creates the folder in one visible step.
func (s *Store) make(handle string) error {
	fresh, err := os.MkdirTemp(s.folders(), ".new-*")
	if err != nil {
		return fmt.Errorf("making the volume's folder: %w", err)
	}
	if err := os.Chmod(fresh, 0o777); err != nil {
		return fmt.Errorf("opening up the volume's folder: %w", err)
	}
	if err := os.Rename(fresh, s.Path(handle)); err != nil {
		return fmt.Errorf("putting the volume's folder in place: %w", err)
	}
	return flush(s.folders())
}

// mark records that the folder was created.
func (s *Store) mark(handle string) error {
	if _, err := os.Lstat(s.marker(handle)); err == nil {
		return nil
	}
	if err := os.Mkdir(s.marker(handle), 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("noting that the volume's folder was made: %w", err)
	}
	return flush(filepath.Dir(s.marker(handle)))
}

// Remove removes the folder of a volume that no Pod on the node uses, and the record of its creation. It is idempotent;
// a folder that was never created is no error. Calls of Remove and Sweep must not run concurrently.
func (s *Store) Remove(handle, volume string) error {
	if err := s.drop(removing + handle); err != nil { // left by a removal that failed half-way
		return err
	}
	if err := s.retire(handle, volume); err != nil {
		return err
	}
	return failpoint.Around("nodeagent/localvolume.remove", func() error { return s.drop(removing + handle) })
}

// retire renames the folder, after which no Pod can begin to use it.
func (s *Store) retire(handle, volume string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	users, err := s.users(func(u Use) bool { return u.Handle == handle || u.Volume == volume })
	if err != nil {
		return err
	}
	if len(users) > 0 {
		return fmt.Errorf("%w: pod %s", ErrInUse, users[0])
	}
	if err := s.unmount(s.Path(handle)); err != nil {
		return err
	}
	err = os.Rename(s.Path(handle), s.Path(removing+handle))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("taking the volume's folder out of its place: %w", err)
	}
	if err := os.Remove(s.marker(handle)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forgetting that the volume's folder was made: %w", err)
	}
	return nil
}

// drop removes one entry of the folder of local volumes. It first unmounts what Pods have left mounted in it; if that
// fails, it returns an error and leaves the mount's contents.
func (s *Store) drop(name string) error {
	if err := s.unmount(s.Path(name)); err != nil {
		return err
	}
	return podfiles.RemoveTree(s.Path(name))
}

func (s *Store) unmount(dir string) error {
	targets, err := s.mounts.Under(dir)
	if err != nil {
		return fmt.Errorf("listing the mounts in the volume: %w", err)
	}
	for _, target := range targets {
		if err := s.mounts.Unmount(target); err != nil {
			return fmt.Errorf("unmounting %s: %w", target, err)
		}
	}
	return nil
}

// Sweep finishes what a killed agent had begun to create or to remove.
func (s *Store) Sweep() error {
	entries, err := s.unfinished()
	problems := []error{err}
	for _, name := range entries {
		problems = append(problems, s.drop(name))
	}
	return errors.Join(problems...)
}

func (s *Store) unfinished() (names []string, err error) {
	s.mu.Lock() // nothing is being created
	defer s.mu.Unlock()
	entries, err := os.ReadDir(s.folders())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the local volumes: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// users returns the Pods that use a volume for which meant returns true.
func (s *Store) users(meant func(Use) bool) ([]types.UID, error) {
	pods, err := s.files.List()
	if err != nil {
		return nil, err
	}
	var users []types.UID
	for _, pod := range pods {
		uses, err := s.usesOf(pod)
		if err != nil {
			return nil, err
		}
		for _, use := range uses {
			if meant(use) {
				users = append(users, pod)
				break
			}
		}
	}
	return users, nil
}

// flush writes the entries of one folder to disk.
func flush(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil {
		return fmt.Errorf("writing %s to disk: %w", dir, err)
	}
	return nil
}
