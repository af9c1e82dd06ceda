package containerconfig

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/podenv"
	"keelson.dev/services/nodeagent/internal/qos"
	"keelson.dev/services/nodeagent/internal/runtime"
	"keelson.dev/services/nodeagent/internal/sizes"
	"keelson.dev/services/nodeagent/internal/userns"
)

// ContainerInput is all that one container instance depends on.
type ContainerInput struct {
	Node
	Pod       *corev1.Pod
	Container *corev1.Container
	// Attempt is the number of earlier instances of this container.
	Attempt uint32
	// ImageRef is the runtime's name of the image, Image the user in its configuration.
	ImageRef string
	Image    ImageUser
	// Env is the result of podenv.Resolve.
	Env podenv.Result
	// Mounts are the container's volume mounts, complete and in order.
	Mounts []*cri.Mount
	// VolumeImages maps the names of image volumes among them to the images' IDs.
	VolumeImages map[string]string
	// HostsFile and TerminationLog are files on the host; an empty one is not mounted.
	HostsFile, TerminationLog string
	Devices                   []*cri.Device
	CDIDevices                []*cri.CDIDevice
	UserNamespace             *userns.Range
	// TargetContainerID makes an ephemeral container share the processes of another instance; empty: it sees its own.
	TargetContainerID string
	// Annotations are added to those of this package, which they cannot replace.
	Annotations map[string]string
	CPUs        CPUs
}

// CPUs are the CPUs that a container may use.
type CPUs struct {
	// Set is in the kernel's form, like 0-2,7; empty for all.
	Set string
	// Exclusive means that only this container uses them: it has no CPU quota.
	Exclusive bool
}

// Of adds the CPUs to resources.
func (c CPUs) Of(r *cri.LinuxContainerResources) *cri.LinuxContainerResources {
	if c.Exclusive {
		r.CpuQuota = 0
	}
	r.CpusetCpus = c.Set
	return r
}

// hostsPath is where a container looks up names.
const hostsPath = "/etc/hosts"

// Container computes the configuration of one container instance.
func Container(in ContainerInput) (*cri.ContainerConfig, error) {
	container := in.Container
	context, err := effective(in.Pod, container, in.Image).context(in)
	if err != nil {
		return nil, err
	}
	labels := podLabels(in.Pod)
	labels[runtime.LabelContainerName] = container.Name
	noted, err := annotations(in)
	if err != nil {
		return nil, err
	}
	return &cri.ContainerConfig{
		Metadata:    &cri.ContainerMetadata{Name: container.Name, Attempt: in.Attempt},
		Image:       &cri.ImageSpec{Image: in.ImageRef, UserSpecifiedImage: container.Image},
		Command:     in.Env.Command,
		Args:        in.Env.Args,
		WorkingDir:  container.WorkingDir,
		Envs:        variables(in.Env.Env),
		Mounts:      mounts(in),
		Devices:     in.Devices,
		CDIDevices:  in.CDIDevices,
		Labels:      labels,
		Annotations: noted,
		LogPath:     LogFile(container.Name, in.Attempt),
		Stdin:       container.Stdin,
		StdinOnce:   container.StdinOnce,
		Tty:         container.TTY,
		Linux: &cri.LinuxContainerConfig{SecurityContext: context, Resources: in.CPUs.Of(Resources(in.Pod,
			container, in.Node))},
	}, nil
}

// LogFile returns the path of an instance's log, relative to the Pod's LogDir.
func LogFile(container string, attempt uint32) string {
	return fmt.Sprintf("%s/%d.log", container, attempt)
}

func annotations(in ContainerInput) (map[string]string, error) {
	size, err := sizes.InstanceOf(in.Pod, in.Container).Encode()
	if err != nil {
		return nil, err
	}
	out := maps.Clone(in.Annotations)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, map[string]string{
		sizes.Annotation:                   size,
		AnnotationHash:                     Hash(in.Container),
		AnnotationRestartCount:             strconv.Itoa(int(in.Attempt)),
		AnnotationTerminationMessagePath:   in.Container.TerminationMessagePath,
		AnnotationTerminationMessagePolicy: string(in.Container.TerminationMessagePolicy),
		AnnotationGracePeriod: strconv.FormatInt(ptr.Deref(in.Pod.Spec.TerminationGracePeriodSeconds,
			corev1.DefaultTerminationGracePeriodSeconds), 10),
		runtime.AnnotationImage:                  in.Container.Image,
		runtime.AnnotationTerminationMessagePath: in.TerminationLog,
	})
	if ids := slices.Sorted(maps.Values(in.VolumeImages)); len(ids) > 0 {
		out[runtime.AnnotationVolumeImages] = strings.Join(ids, ",")
	}
	return out, nil
}

func variables(env []podenv.Variable) []*cri.KeyValue {
	var out []*cri.KeyValue
	for _, variable := range env {
		out = append(out, &cri.KeyValue{Key: variable.Name, Value: []byte(variable.Value)})
	}
	return out
}

// mounts adds the files of every container to its volume mounts. A container that mounts something at /etc/hosts
// itself keeps that.
func mounts(in ContainerInput) []*cri.Mount {
	out := append([]*cri.Mount(nil), in.Mounts...)
	if in.HostsFile != "" && !mountsAt(in.Container, hostsPath) {
		out = append(out, &cri.Mount{HostPath: in.HostsFile, ContainerPath: hostsPath,
			Readonly: readOnlyRoot(in.Container), SelinuxRelabel: in.SELinux})
	}
	if path := in.Container.TerminationMessagePath; in.TerminationLog != "" && path != "" {
		out = append(out, &cri.Mount{HostPath: in.TerminationLog, ContainerPath: path,
			SelinuxRelabel: in.SELinux})
	}
	if in.UserNamespace == nil {
		return out
	}
	for i, mount := range out { // owners of files are mapped like the Pod's users
		shifted := proto.CloneOf(mount)
		shifted.UidMappings, shifted.GidMappings = mapping(in.UserNamespace), mapping(in.UserNamespace)
		out[i] = shifted
	}
	return out
}

func mountsAt(container *corev1.Container, path string) bool {
	for i := range container.VolumeMounts {
		if strings.TrimRight(container.VolumeMounts[i].MountPath, "/") == path {
			return true
		}
	}
	return false
}

func readOnlyRoot(container *corev1.Container) bool {
	return container.SecurityContext != nil && ptr.Deref(container.SecurityContext.ReadOnlyRootFilesystem, false)
}

// Resources computes the limits of one container in the form of cgroup v1, which runtimes translate.
func Resources(pod *corev1.Pod, container *corev1.Container, node Node) *cri.LinuxContainerResources {
	requests, limits := container.Resources.Requests, container.Resources.Limits
	cpu := requests.Cpu()
	if _, ok := requests[corev1.ResourceCPU]; !ok {
		cpu = limits.Cpu()
	}
	out := &cri.LinuxContainerResources{
		CpuShares:          qos.CPUShares(cpu.MilliValue()),
		CpuQuota:           qos.CPUQuota(limits.Cpu().MilliValue()),
		CpuPeriod:          qos.CPUPeriod,
		MemoryLimitInBytes: sizes.InstanceOf(pod, container).MemoryLimit(),
		OomScoreAdj:        qos.OOMScore(pod, container, node.MemoryCapacity),
	}
	for name, quantity := range limits {
		if size, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix); ok {
			out.HugepageLimits = append(out.HugepageLimits, &cri.HugepageLimit{PageSize: pageSize(size),
				Limit: uint64(quantity.Value())})
		}
	}
	out.Unified = node.Memory.Unified(pod, container)
	if node.Memory.CgroupV2() && out.MemoryLimitInBytes > 0 { // without a limit, only Unified can bound the swap
		out.MemorySwapLimitInBytes = out.MemoryLimitInBytes + node.Memory.SwapOf(pod, container)
	}
	return out
}

// Resized computes the limits that change for a running container.
func Resized(pod *corev1.Pod, container *corev1.Container, node Node) *cri.LinuxContainerResources {
	all := Resources(pod, container, node)
	return &cri.LinuxContainerResources{CpuShares: all.CpuShares, CpuQuota: all.CpuQuota, CpuPeriod: all.CpuPeriod,
		MemoryLimitInBytes: all.MemoryLimitInBytes, MemorySwapLimitInBytes: all.MemorySwapLimitInBytes,
		Unified: all.Unified}
}

// pageSize converts a page size to the kernel's form: 2Mi is 2MB.
func pageSize(size string) string { return strings.TrimSuffix(size, "i") + "B" }
