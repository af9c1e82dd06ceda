package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/downward"
	"keelson.dev/services/nodeagent/internal/podfiles"
)

// Host drives the volumes of all Pods of a node. Calls for different Pods may run concurrently; those for one Pod
// must not.
type Host struct {
	root    podfiles.Root
	mounter Mounter
	kinds   []Kind
}

// NewHost returns a Host with the given kinds.
func NewHost(root podfiles.Root, mounter Mounter, kinds []Kind) *Host {
	return &Host{root: root, mounter: mounter, kinds: kinds}
}

// Volumes are the volumes of one Pod, by name.
type Volumes map[string]Result

// RefreshAt returns when SetUp must run again even if no object changes; zero means never.
func (v Volumes) RefreshAt() time.Time {
	var soonest time.Time
	for _, result := range v {
		if !result.RefreshAt.IsZero() && (soonest.IsZero() || result.RefreshAt.Before(soonest)) {
			soonest = result.RefreshAt
		}
	}
	return soonest
}

// SetUp sets up all volumes of a Pod that its containers mount, or brings them up to date. It tries every volume;
// the error joins one sentence per volume that failed, each fit for an event with reason FailedMount. It returns
// the volumes that are set up even then.
func (h *Host) SetUp(ctx context.Context, view downward.View, allocatable corev1.ResourceList) (Volumes, error) {
	volumes, used := Volumes{}, mounted(view.Pod)
	var problems []error
	for i := range view.Pod.Spec.Volumes {
		volume := &view.Pod.Spec.Volumes[i]
		if !used[volume.Name] {
			continue
		}
		result, err := h.setUpOne(ctx, view, volume, allocatable)
		if err != nil {
			problems = append(problems, fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", volume.Name, err))
			continue
		}
		volumes[volume.Name] = result
	}
	return volumes, errors.Join(problems...)
}

func (h *Host) setUpOne(ctx context.Context, view downward.View, volume *corev1.Volume,
	allocatable corev1.ResourceList) (Result, error) {
	kind, err := h.kindOf(volume)
	if err != nil {
		return Result{}, err
	}
	dir := h.root.Volume(view.Pod.UID, kind.Name(), volume.Name)
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return Result{}, fmt.Errorf("making the folder of the pod's volumes: %w", err)
	}
	var result Result
	err = failpoint.Around("nodeagent/volume.setup", func() (err error) {
		result, err = kind.SetUp(ctx, Request{View: view, Volume: volume, Dir: dir, Allocatable: allocatable})
		return err
	})
	return result, err
}

func (h *Host) kindOf(volume *corev1.Volume) (Kind, error) {
	var names []string
	for _, kind := range h.kinds {
		if kind.Handles(volume) {
			return kind, nil
		}
		names = append(names, strings.TrimPrefix(kind.Name(), "kubernetes.io~"))
	}
	return nil, fmt.Errorf("the type of this volume is none that this node can serve: %v", names)
}

// mounted returns the names of the volumes that a container of the Pod mounts.
func mounted(pod *corev1.Pod) map[string]bool {
	used := map[string]bool{}
	add := func(mounts []corev1.VolumeMount, devices []corev1.VolumeDevice) {
		for i := range mounts {
			used[mounts[i].Name] = true
		}
		for i := range devices {
			used[devices[i].Name] = true
		}
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		add(c.VolumeMounts, c.VolumeDevices)
	}
	for i := range pod.Spec.EphemeralContainers {
		add(pod.Spec.EphemeralContainers[i].VolumeMounts, pod.Spec.EphemeralContainers[i].VolumeDevices)
	}
	return used
}

// TearDown undoes what the kinds of volumes have to undo, and removes all mounts of a Pod, using only what is on
// disk; the files are removed with the Pod's folder. Call it when no process of the Pod is left. It is idempotent;
// after an error some mounts may be left, so call it again.
func (h *Host) TearDown(ctx context.Context, uid types.UID) error {
	return failpoint.Around("nodeagent/volume.teardown", func() error {
		// Parts of volumes are unmounted first: their mounts keep in use what a driver removes.
		if err := h.unmountUnder(h.root.SubPaths(uid)); err != nil {
			return err
		}
		var problems []error
		for _, kind := range h.kinds {
			if undoing, ok := kind.(TearsDown); ok {
				problems = append(problems, h.tearDownKind(ctx, undoing, uid))
			}
		}
		if err := errors.Join(problems...); err != nil {
			return err
		}
		return h.unmountUnder(h.root.Pod(uid))
	})
}

// tearDownKind takes down the volumes of one kind that have a folder.
func (h *Host) tearDownKind(ctx context.Context, kind TearsDown, uid types.UID) error {
	entries, err := os.ReadDir(filepath.Dir(h.root.Volume(uid, kind.Name(), "any")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing the pod's volumes: %w", err)
	}
	var problems []error
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue // never finished, and not a volume's name
		}
		if err := kind.TearDown(ctx, uid, entry.Name(), h.root.Volume(uid, kind.Name(), entry.Name())); err != nil {
			problems = append(problems, fmt.Errorf("UnmountVolume.TearDown failed for volume %q : %w", entry.Name(),
				err))
		}
	}
	return errors.Join(problems...)
}

// unmountUnder succeeds only when another listing shows no mount any more, because removing files below an
// overlooked mount would remove files of others.
func (h *Host) unmountUnder(dir string) error {
	targets, err := h.mounter.Under(dir)
	if err != nil {
		return fmt.Errorf("listing the pod's mounts: %w", err)
	}
	var problems []error
	for _, target := range targets {
		if err := h.mounter.Unmount(target); err != nil {
			problems = append(problems, fmt.Errorf("unmounting %s: %w", target, err))
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	if left, err := h.mounter.Under(dir); err != nil || len(left) > 0 {
		return errors.Join(fmt.Errorf("%d mounts of the pod are left", len(left)), err)
	}
	return nil
}
