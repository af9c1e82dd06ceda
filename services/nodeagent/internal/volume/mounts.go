package volume

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/podenv"
	"keelson.dev/services/nodeagent/internal/volume/subpath"
)

// MountRequest asks for the mounts of one container.
type MountRequest struct {
	Pod       *corev1.Pod
	Container *corev1.Container
	// Volumes is the result of SetUp, Env that of podenv.Resolve.
	Volumes Volumes
	Env     podenv.Result
	// Images maps the names of image volumes to the images' IDs.
	Images map[string]string
	// RecursiveReadOnly reports whether the runtime can make mounts read-only recursively.
	RecursiveReadOnly bool
	// SELinux reports whether the host has SELinux: volumes that the node has created then get the container's label.
	SELinux bool
}

// Mounts returns the mounts of a new instance of a container, and binds the parts of volumes that it uses
// (subPath). Call it for each instance. An error is one sentence for reason CreateContainerConfigError.
func (h *Host) Mounts(request MountRequest) ([]*cri.Mount, error) {
	var mounts []*cri.Mount
	for i := range request.Container.VolumeMounts {
		mount, err := h.mount(request, i)
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, mount)
	}
	return mounts, nil
}

func (h *Host) mount(request MountRequest, index int) (*cri.Mount, error) {
	spec := &request.Container.VolumeMounts[index]
	volume, ok := request.Volumes[spec.Name]
	if !ok {
		return nil, fmt.Errorf("cannot find volume %q to mount into container %q", spec.Name, request.Container.Name)
	}
	if volume.Device {
		return nil, fmt.Errorf("volume %q is a block device, but is specified in volumeMounts of container %q",
			spec.Name, request.Container.Name)
	}
	part, err := partOf(request, spec)
	if err != nil {
		return nil, err
	}
	if volume.Image {
		return imageMount(request, spec, part)
	}
	source, err := h.bind(request, index, volume.Path, part)
	if err != nil {
		return nil, err
	}
	mount := &cri.Mount{
		HostPath:       source,
		ContainerPath:  spec.MountPath,
		Readonly:       spec.ReadOnly || volume.ReadOnly,
		Propagation:    propagation(spec.MountPropagation),
		SelinuxRelabel: request.SELinux && volume.Own,
	}
	mount.RecursiveReadOnly, err = recursive(spec, request.RecursiveReadOnly)
	return mount, err
}

// partOf returns the path of the part of the volume that the mount uses; empty for the whole.
func partOf(request MountRequest, spec *corev1.VolumeMount) (string, error) {
	if spec.SubPathExpr == "" {
		return spec.SubPath, nil
	}
	expanded, err := podenv.ExpandAll(spec.SubPathExpr, unix.PathMax, request.Env.Lookup)
	if err != nil {
		return "", fmt.Errorf("subPathExpr of volume %q: %w", spec.Name, err)
	}
	return expanded, nil
}

// bind returns the path of the whole volume, or of a part that it binds.
func (h *Host) bind(request MountRequest, index int, whole, part string) (string, error) {
	if part == "" {
		return whole, nil
	}
	target := h.root.SubPath(request.Pod.UID, request.Container.Name, index)
	if err := subpath.Bind(h.mounter, whole, part, target); err != nil {
		return "", fmt.Errorf("failed to prepare subPath for volumeMount %q of container %q: %w",
			request.Container.VolumeMounts[index].Name, request.Container.Name, err)
	}
	return target, nil
}

// imageMount returns a mount of an image, or of a part of it, for the runtime.
func imageMount(request MountRequest, spec *corev1.VolumeMount, part string) (*cri.Mount, error) {
	id := request.Images[spec.Name]
	if id == "" {
		return nil, fmt.Errorf("the image of volume %q to mount into container %q was not looked for", spec.Name,
			request.Container.Name)
	}
	if path.IsAbs(part) || slices.Contains(strings.Split(part, "/"), "..") {
		return nil, fmt.Errorf("subPath %q of volumeMount %q of container %q must be a relative path without '..'",
			part, spec.Name, request.Container.Name)
	}
	mount := &cri.Mount{ContainerPath: spec.MountPath, Readonly: true, Image: &cri.ImageSpec{Image: id},
		ImageSubPath: part}
	var err error
	mount.RecursiveReadOnly, err = recursive(spec, request.RecursiveReadOnly)
	return mount, err
}

func propagation(mode *corev1.MountPropagationMode) cri.MountPropagation {
	switch ptr.Deref(mode, corev1.MountPropagationNone) {
	case corev1.MountPropagationHostToContainer:
		return cri.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
	case corev1.MountPropagationBidirectional:
		return cri.MountPropagation_PROPAGATION_BIDIRECTIONAL
	}
	return cri.MountPropagation_PROPAGATION_PRIVATE
}

// recursive reports whether mounts inside the mount are to be read-only too.
func recursive(spec *corev1.VolumeMount, able bool) (bool, error) {
	mode := ptr.Deref(spec.RecursiveReadOnly, corev1.RecursiveReadOnlyDisabled)
	if !spec.ReadOnly || mode == corev1.RecursiveReadOnlyDisabled {
		return false, nil
	}
	if mode == corev1.RecursiveReadOnlyEnabled && !able {
		return false,
			errors.New(
				"container runtime of this node cannot make mounts read-only recursively (recursiveReadOnly: Enabled)")
	}
	return able, nil
}
