package csidriver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// finalizer keeps an attachment until the storage has let go of it.
const finalizer = "csidriver.example.com/attached"

// MediumKey is the volume attribute that says what a volume with a file system is made of: a folder, or Memory, which
// is a file system of the volume's size and empty when it is staged again.
const (
	MediumKey = "medium"
	Memory    = "memory"
)

// nodeKey is the key under which the storage names, for the driver on a node, the node to which the volume is
// attached.
const nodeKey = "node"

// Storage is what all nodes reach: volumes that are folders, each of which is given to one node at a time. It is safe
// for concurrent use.
type Storage struct {
	// Folder holds all volumes, Name is the driver's. Both are set before the first use.
	Folder, Name string

	mu sync.Mutex // guards the fields below
	// attached is the node of each volume, staged are the nodes where it is mounted.
	attached map[string]string
	staged   map[string]map[string]bool
	early    []string
	// sizes are those of the volumes that are not folders, in bytes; sick are the volumes that are out of order.
	sizes map[string]int64
	sick  map[string]string
}

// NewStorage returns storage without volumes.
func NewStorage(name, folder string) *Storage {
	return &Storage{Folder: folder, Name: name, attached: map[string]string{}, staged: map[string]map[string]bool{},
		sizes: map[string]int64{}, sick: map[string]string{}}
}

// Early says which volumes were taken from which nodes while they were mounted there, since it was last asked.
func (s *Storage) Early() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.early = nil }()
	return s.early
}

// Serve makes one pass over the attachments, as the attacher of a driver does. An error of one is met by calling it
// again.
func (s *Storage) Serve(ctx context.Context, client kubernetes.Interface) error {
	all, err := client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing attachments: %w", err)
	}
	var failed []error
	for i := range all.Items {
		if a := &all.Items[i]; a.Spec.Attacher == s.Name {
			failed = append(failed, s.serve(ctx, client, a))
		}
	}
	return errors.Join(failed...)
}

// serve does the next step about an attachment.
func (s *Storage) serve(ctx context.Context, client kubernetes.Interface, a *storagev1.VolumeAttachment) error {
	pv, err := client.CoreV1().PersistentVolumes().Get(ctx, *a.Spec.Source.PersistentVolumeName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the volume of attachment %s: %w", a.Name, err)
	}
	handle, attachments := pv.Spec.CSI.VolumeHandle, client.StorageV1().VolumeAttachments()
	switch held := slices.Contains(a.Finalizers, finalizer); {
	case a.DeletionTimestamp != nil && held:
		s.detach(handle, a.Spec.NodeName)
		a.Finalizers = slices.DeleteFunc(a.Finalizers, func(f string) bool { return f == finalizer })
		_, err = attachments.Update(ctx, a, metav1.UpdateOptions{})
	case a.DeletionTimestamp != nil:
	case !held:
		a.Finalizers = append(a.Finalizers, finalizer)
		_, err = attachments.Update(ctx, a, metav1.UpdateOptions{})
	case !a.Status.Attached:
		a.Status = storagev1.VolumeAttachmentStatus{Attached: true,
			AttachmentMetadata: map[string]string{nodeKey: a.Spec.NodeName}}
		if refused := s.attach(handle, a.Spec.NodeName); refused != nil {
			a.Status = storagev1.VolumeAttachmentStatus{AttachError: &storagev1.VolumeError{Time: metav1.Now(),
				Message: refused.Error()}}
		}
		_, err = attachments.UpdateStatus(ctx, a, metav1.UpdateOptions{})
	}
	return err
}

// attach gives a volume to a node, if no other node has it.
func (s *Storage) attach(handle, node string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.attached[handle]; other != "" && other != node {
		s.early = append(s.early, fmt.Sprintf("volume %s is to be attached to %s and %s", handle, other, node))
		return fmt.Errorf("volume %s is attached to %s", handle, other)
	}
	s.attached[handle] = node
	return nil
}

// detach takes a volume from a node.
func (s *Storage) detach(handle, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attached[handle] != node {
		return
	}
	delete(s.attached, handle)
	if s.staged[handle][node] {
		s.early = append(s.early, fmt.Sprintf("volume %s is taken from %s, where it is mounted", handle, node))
	}
}

// stage returns the folder of a volume that the node has.
func (s *Storage) stage(handle, node string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !filepath.IsLocal(handle) {
		return "", fmt.Errorf("volume_id %q must be the name of a folder", handle)
	}
	if at := s.attached[handle]; at != node {
		return "", fmt.Errorf("volume %s is attached to %q, not to %s", handle, at, node)
	}
	if s.staged[handle] == nil {
		s.staged[handle] = map[string]bool{}
	}
	s.staged[handle][node] = true
	return filepath.Join(s.Folder, handle), nil
}

// Create makes a volume of a size, in bytes, that is not a folder.
func (s *Storage) Create(handle string, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes[handle] = size
	file, err := os.OpenFile(s.image(handle), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(size), file.Close())
}

// image is the file of a volume that is used as a device.
func (s *Storage) image(handle string) string { return filepath.Join(s.Folder, handle+".image") }

// size returns the size of a volume that is not a folder.
func (s *Storage) size(handle string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sizes[handle]
}

// Sicken makes a volume be out of order, for the reason; an empty one heals it.
func (s *Storage) Sicken(handle, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sick[handle] = reason
}

func (s *Storage) ails(handle string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sick[handle]
}

// unstage notes that a node has let go of a volume.
func (s *Storage) unstage(handle, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.staged[handle], node)
}

// StagedOn are the nodes where a volume is mounted, sorted.
func (s *Storage) StagedOn(handle string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.staged[handle]))
}
