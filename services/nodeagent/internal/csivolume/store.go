package csivolume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/volumename"
	"keelson.dev/services/nodeagent/internal/plainfile"
)

// errDamaged is wrapped by errors about a record that cannot be read.
var errDamaged = errors.New("damaged record of a CSI volume")

// place identifies one volume of one Pod.
type place struct {
	pod  types.UID
	name string
}

// store holds the records of one node: on disk, and a copy in memory. Its methods are safe for concurrent use.
type store struct {
	paths
	// changed is called after the volumes in use have changed. It must not block.
	changed func()

	mu sync.Mutex // guards the fields below and the order of the writes
	// pods are the volumes of Pods; left, by file name, those of removed Pods, which are still to be unpublished.
	pods map[place]record
	left map[string]record
	// damaged are the volumes of Pods with unreadable records: whether they are in use is uncertain.
	damaged map[place]bool
	// ending are the volumes of Pods that are being taken down.
	ending map[place]bool
	// staged are the volumes that may be staged.
	staged map[volumeID]record
	// reported are the volumes that the API server knows to be in use.
	reported map[corev1.UniqueVolumeName]bool
}

// openStore reads what is on disk. The error names what is damaged; the store holds all else.
func openStore(p paths, changed func()) (*store, error) {
	s := &store{paths: p, changed: changed, pods: map[place]record{}, left: map[string]record{},
		damaged: map[place]bool{}, ending: map[place]bool{}, staged: map[volumeID]record{},
		reported: map[corev1.UniqueVolumeName]bool{}}
	return s, errors.Join(s.loadPods(), s.loadStaged(), s.loadLeft())
}

func (s *store) loadPods() error {
	pods, err := s.List()
	problems := []error{err}
	for _, uid := range pods {
		names, err := entries(filepath.Dir(s.pod(uid, "any")))
		problems = append(problems, err)
		for _, name := range names {
			r, err := load(s.read, filepath.Join(s.pod(uid, name), recordName))
			switch {
			case err == nil:
				s.pods[place{uid, name}] = r
			case !errors.Is(err, fs.ErrNotExist):
				s.damaged[place{uid, name}] = true
				problems = append(problems, err)
			}
		}
	}
	return errors.Join(problems...)
}

func (s *store) loadStaged() error {
	drivers, err := entries(s.stagedDir())
	problems := []error{err}
	for _, driver := range drivers {
		volumes, err := entries(filepath.Join(s.stagedDir(), driver))
		problems = append(problems, err)
		for _, volume := range volumes {
			if driver == devices && volume == "publish" {
				continue
			}
			dir := filepath.Join(s.stagedDir(), driver, volume)
			r, err := load(s.read, filepath.Join(dir, recordName))
			if err == nil && s.stage(r.id()) != dir {
				err = fmt.Errorf("%w: %s is of another volume", errDamaged, dir)
			}
			switch {
			case err == nil:
				s.staged[r.id()] = r
			case errors.Is(err, fs.ErrNotExist) && os.Remove(dir) == nil:
				// An agent was killed before it wrote the record, or after it removed it.
			default:
				problems = append(problems, err, s.restore(dir))
			}
		}
	}
	return errors.Join(problems...)
}

// restore writes the record of a staged volume again from those of the Pods that use it.
func (s *store) restore(dir string) error {
	for _, r := range s.pods {
		if s.stage(r.id()) == dir {
			staged := record{Driver: r.Driver, Handle: r.Handle, Attachment: r.Attachment}
			s.staged[r.id()] = staged
			return save(filepath.Join(dir, recordName), staged)
		}
	}
	return fmt.Errorf("%w: no pod uses what is staged in %s: it stays until somebody unmounts and removes it",
		errDamaged, dir)
}

func (s *store) loadLeft() error {
	files, err := entries(s.leftDir())
	problems := []error{err}
	for _, file := range files {
		r, err := load(s.read, filepath.Join(s.leftDir(), file))
		if err == nil {
			s.left[file] = r
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// read reads a file of bounded size in the agent's folder.
func (s *store) read(path string) ([]byte, error) {
	file, err := plainfile.Root(s.Dir).Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, largestRecord))
}

// entries lists the names in a folder except unfinished files. A missing folder is empty.
func entries(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing CSI volumes: %w", err)
	}
	var names []string
	for _, entry := range list {
		if !strings.HasPrefix(entry.Name(), ".") {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// of returns what is known of a Pod's volume.
func (s *store) of(at place) (record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.pods[at]
	return r, ok
}

// users returns the Pods that use a volume, including removed ones that have left it.
func (s *store) users(v volumeID) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usersLocked(v)
}

func (s *store) usersLocked(v volumeID) []types.UID {
	var pods []types.UID
	for at, r := range s.pods {
		if r.id() == v {
			pods = append(pods, at.pod)
		}
	}
	for _, r := range s.left {
		if r.id() == v {
			pods = append(pods, r.Pod)
		}
	}
	return pods
}

// put records what is known of a Pod's volume.
func (s *store) put(at place, r record) error {
	return s.write(func() error {
		if err := save(filepath.Join(s.pod(at.pod, at.name), recordName), r); err != nil {
			return err
		}
		s.pods[at] = r
		delete(s.damaged, at)
		if r.Published {
			delete(s.ending, at)
		}
		return nil
	})
}

// end notes that a Pod's volume is being taken down.
func (s *store) end(at place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending[at] = true
}

// amend changes the record of a Pod's volume, if there is one.
func (s *store) amend(at place, change func(*record)) error {
	return s.write(func() error { return s.amendLocked(at, change) })
}

func (s *store) amendLocked(at place, change func(*record)) error {
	r, known := s.pods[at]
	if !known {
		return nil
	}
	change(&r)
	if err := save(filepath.Join(s.pod(at.pod, at.name), recordName), r); err != nil {
		return err
	}
	s.pods[at] = r
	return nil
}

// resized records that a volume has a size, in bytes, for all Pods that have it.
func (s *store) resized(v volumeID, size int64) error {
	return s.write(func() error {
		for at, r := range s.pods {
			if r.id() != v || !r.Published {
				continue
			}
			if err := s.amendLocked(at, func(r *record) { r.Size = size }); err != nil {
				return err
			}
		}
		return nil
	})
}

// drop forgets a Pod's volume, with its folder if that is empty: other contents are removed with the Pod's folder.
func (s *store) drop(at place) error {
	return s.write(func() error {
		dir := s.pod(at.pod, at.name)
		if err := remove(filepath.Join(dir, recordName)); err != nil {
			return err
		}
		_ = os.Remove(dir)
		delete(s.ending, at)
		delete(s.pods, at)
		delete(s.damaged, at)
		return nil
	})
}

// leave records that a Pod's volume is to be unpublished after the Pod is gone, and forgets it as the Pod's.
func (s *store) leave(at place, r record) error {
	file := hash(s.published(at, r.Block)) + ".json"
	err := s.write(func() error {
		if err := save(filepath.Join(s.leftDir(), file), r); err != nil {
			return err
		}
		s.left[file] = r
		return nil
	})
	if err != nil {
		return err
	}
	return s.drop(at)
}

// settle forgets what was left.
func (s *store) settle(file string) error {
	return s.write(func() error {
		if err := remove(filepath.Join(s.leftDir(), file)); err != nil {
			return err
		}
		delete(s.left, file)
		return nil
	})
}

// putStaged records that a volume may be staged.
func (s *store) putStaged(r record) error {
	return s.write(func() error {
		if err := save(filepath.Join(s.stage(r.id()), recordName), r); err != nil {
			return err
		}
		s.staged[r.id()] = r
		return nil
	})
}

// dropStaged forgets a staged volume. Its folders must contain only what the agent has put there.
func (s *store) dropStaged(v volumeID) error {
	return s.write(func() error {
		for _, path := range []string{s.staging(v), filepath.Join(s.stage(v), recordName), s.stage(v)} {
			if err := remove(path); err != nil {
				return err
			}
		}
		_ = os.Remove(filepath.Dir(s.stage(v))) // unless the driver has other volumes
		delete(s.staged, v)
		return nil
	})
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing what was a CSI volume: %w", err)
	}
	return nil
}

// write changes records, and calls changed if other volumes are in use than before.
func (s *store) write(do func() error) error {
	s.mu.Lock()
	before := s.inUseLocked()
	err := do()
	after := s.inUseLocked()
	for _, name := range before {
		if !slices.Contains(after, name) {
			delete(s.reported, name)
		}
	}
	s.mu.Unlock()
	if !slices.Equal(before, after) {
		s.changed()
	}
	return err
}

// inUse returns the attached volumes that are in use on this node, sorted.
func (s *store) inUse() []corev1.UniqueVolumeName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inUseLocked()
}

func (s *store) inUseLocked() []corev1.UniqueVolumeName {
	names := map[corev1.UniqueVolumeName]bool{}
	add := func(r record) {
		if r.Attachment != "" {
			names[volumename.Unique(r.Driver, r.Handle)] = true
		}
	}
	for _, r := range s.pods {
		add(r)
	}
	for _, r := range s.left {
		add(r)
	}
	for _, r := range s.staged {
		add(r)
	}
	return slices.Sorted(maps.Keys(names))
}

// report takes in which volumes the Node in the API lists as in use.
func (s *store) report(names []corev1.UniqueVolumeName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inUse := s.inUseLocked()
	for _, name := range names {
		if slices.Contains(inUse, name) {
			s.reported[name] = true
		}
	}
}

// uncertain reports whether a Pod may use a volume of which nothing is known.
func (s *store) uncertain() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.damaged) > 0
}

func (s *store) isReported(name corev1.UniqueVolumeName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reported[name]
}
