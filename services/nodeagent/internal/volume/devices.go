package volume

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What a container may do with a block device: read, write, and make a node of it.
const (
	readDevice  = "r"
	writeDevice = "mrw"
)

// Devices returns the block devices of a new instance of a container; volumes is the result of SetUp. An error is one
// sentence for reason CreateContainerConfigError.
func Devices(container *corev1.Container, volumes Volumes) ([]*cri.Device, error) {
	var devices []*cri.Device
	for i := range container.VolumeDevices {
		spec := &container.VolumeDevices[i]
		volume, ok := volumes[spec.Name]
		if !ok {
			return nil, fmt.Errorf("cannot find volume %q to pass into container %q", spec.Name, container.Name)
		}
		if !volume.Device {
			return nil, fmt.Errorf("volume %q is no block device, but is specified in volumeDevices of container %q",
				spec.Name, container.Name)
		}
		permissions := writeDevice
		if volume.ReadOnly {
			permissions = readDevice
		}
		devices = append(devices, &cri.Device{HostPath: volume.Path, ContainerPath: spec.DevicePath,
			Permissions: permissions})
	}
	return devices, nil
}
