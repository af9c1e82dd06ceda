package containerconfig

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/memory"
	"keelson.dev/services/nodeagent/internal/podenv"
	"keelson.dev/services/nodeagent/internal/userns"
)

func sandbox(t *testing.T, pod *corev1.Pod) *cri.PodSandboxConfig {
	t.Helper()
	config, err := Sandbox(SandboxInput{Pod: pod, Attempt: 3, LogDir: "/logs/x", CgroupParent: "/kubepods/podu-1",
		Node: Node{ClusterDomain: "kube.local"}})
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func container(t *testing.T, pod *corev1.Pod, change func(*ContainerInput)) *cri.ContainerConfig {
	t.Helper()
	config, err := Container(input(pod, change))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func input(pod *corev1.Pod, change func(*ContainerInput)) ContainerInput {
	in := ContainerInput{Pod: pod, Container: &pod.Spec.Containers[0], Attempt: 2, ImageRef: "sha256:1",
		Node: Node{MemoryCapacity: 4 << 30, SeccompRoot: "/seccomp"}, HostsFile: "/pods/hosts",
		TerminationLog: "/pods/term"}
	if change != nil {
		change(&in)
	}
	return in
}

// POD-006, POD-022, POD-061, POD-062
func TestSandbox(t *testing.T) {
	pod := named("web", func(s *corev1.PodSpec) {
		s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 53, HostPort: 5353,
			Protocol: corev1.ProtocolUDP, HostIP: "127.0.0.1"}}
		s.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](7), RunAsGroup: ptr.To[int64](8),
			FSGroup:            ptr.To[int64](9),
			SupplementalGroups: []int64{10}, Sysctls: []corev1.Sysctl{{Name: "net/ipv4/tcp_syncookies", Value: "0"}}}
	})
	pod.Labels = map[string]string{"app": "web", "io.kubernetes.pod.uid": "forged"}
	config := sandbox(t, pod)
	if config.Hostname != "web" || config.Metadata.Attempt != 3 || config.LogDirectory != "/logs/x" ||
		config.Linux.CgroupParent != "/kubepods/podu-1" {
		t.Errorf("got %v", config)
	}
	if config.Labels["app"] != "web" || config.Labels["io.kubernetes.pod.uid"] != "u-1" {
		t.Errorf("labels %v", config.Labels)
	}
	if len(config.PortMappings) != 1 || config.PortMappings[0].HostPort != 5353 ||
		config.PortMappings[0].Protocol != cri.Protocol_UDP {
		t.Errorf("ports %v", config.PortMappings)
	}
	security := config.Linux.SecurityContext
	if security.RunAsUser.Value != 7 || security.RunAsGroup.Value != 8 ||
		!reflect.DeepEqual(security.SupplementalGroups, []int64{10, 9}) {
		t.Errorf("security %v", security)
	}
	if config.Linux.Sysctls["net.ipv4.tcp_syncookies"] != "0" {
		t.Errorf("sysctls %v", config.Linux.Sysctls)
	}
	want := cri.NamespaceOption{Network: cri.NamespaceMode_POD, Pid: cri.NamespaceMode_CONTAINER,
		Ipc: cri.NamespaceMode_POD}
	if got := security.NamespaceOptions; got.Network != want.Network || got.Pid != want.Pid || got.Ipc != want.Ipc ||
		got.UsernsOptions != nil {
		t.Errorf("namespaces %v", got)
	}
}

// SAF-018, POD-259: process namespaces; POD-006: namespaces shared with the host.
func TestSandboxNamespaces(t *testing.T) {
	shared := sandbox(t, named("web", func(s *corev1.PodSpec) { s.ShareProcessNamespace = ptr.To(true) }))
	if shared.Linux.SecurityContext.NamespaceOptions.Pid != cri.NamespaceMode_POD {
		t.Error("the process namespace is not shared")
	}
	host := sandbox(t, named("web", func(s *corev1.PodSpec) {
		s.HostNetwork, s.HostPID, s.HostIPC = true, true, true
		s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	}))
	options := host.Linux.SecurityContext.NamespaceOptions
	if options.Network != cri.NamespaceMode_NODE || options.Pid != cri.NamespaceMode_NODE ||
		options.Ipc != cri.NamespaceMode_NODE {
		t.Errorf("got %v", options)
	}
	if host.Hostname != "" || len(host.PortMappings) != 0 || !host.Linux.SecurityContext.Privileged {
		t.Errorf("got %v", host)
	}
	ephemeral := container(t, named("web", nil), func(in *ContainerInput) { in.TargetContainerID = "c-1" })
	if options := ephemeral.Linux.SecurityContext.NamespaceOptions; options.Pid != cri.NamespaceMode_TARGET ||
		options.TargetId != "c-1" {
		t.Errorf("ephemeral: %v", options)
	}
}

// SAF-094, SAF-096, SAF-097, SAF-098
func TestUserNamespace(t *testing.T) {
	pod := named("web", func(s *corev1.PodSpec) {
		s.HostUsers = ptr.To(false)
		s.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1000)}
	})
	own := &userns.Range{First: 131072, Length: 65536}
	if _, err := Sandbox(SandboxInput{Pod: pod, UserNamespace: own}); !errors.Is(err, ErrUserNamespaces) {
		t.Errorf("a runtime without support: %v", err)
	}
	if _, err := Sandbox(SandboxInput{Pod: pod, UserNamespaces: true}); err == nil {
		t.Error("without a range the Pod would run as the host's users")
	}
	config, err := Sandbox(SandboxInput{Pod: pod, UserNamespaces: true, UserNamespace: own})
	if err != nil {
		t.Fatal(err)
	}
	users := config.Linux.SecurityContext.NamespaceOptions.UsernsOptions
	if users.Mode != cri.NamespaceMode_POD || users.Uids[0].HostId != 131072 || users.Uids[0].ContainerId != 0 ||
		users.Gids[0].Length != 65536 {
		t.Errorf("got %v", users)
	}
	if config.Linux.SecurityContext.RunAsUser.Value != 1000 {
		t.Error("runAsUser is not the user inside")
	}
	volume := &cri.Mount{HostPath: "/v", ContainerPath: "/v"}
	inside := container(t, pod, func(in *ContainerInput) { in.UserNamespace, in.Mounts = own, []*cri.Mount{volume} })
	for _, mount := range inside.Mounts {
		if len(mount.UidMappings) != 1 || mount.UidMappings[0].HostId != 131072 || len(mount.GidMappings) != 1 {
			t.Errorf("mount %v is not shifted", mount)
		}
	}
	if len(volume.UidMappings) != 0 {
		t.Error("the input was changed")
	}
}

// POD-063: the user and the command of a container.
func TestContainer(t *testing.T) {
	pod := named("web", func(s *corev1.PodSpec) {
		s.TerminationGracePeriodSeconds = ptr.To[int64](11)
		s.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](7), RunAsGroup: ptr.To[int64](8),
			SupplementalGroups: []int64{4}, FSGroup: ptr.To[int64](5),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		c := &s.Containers[0]
		c.WorkingDir, c.TTY, c.Stdin, c.StdinOnce = "/srv", true, true, true
		c.TerminationMessagePath, c.TerminationMessagePolicy = "/dev/termination-log", corev1.TerminationMessageReadFile
		c.SecurityContext = &corev1.SecurityContext{RunAsUser: ptr.To[int64](1),
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"},
				Drop: []corev1.Capability{"ALL"}},
			AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost,
				LocalhostProfile: ptr.To("mine")}}
	})
	config := container(t, pod, func(in *ContainerInput) {
		in.Env = podenv.Result{Env: []podenv.Variable{{Name: "A", Value: "1"}}, Command: []string{"run"},
			Args: []string{"-x"}}
		in.Annotations = map[string]string{"more": "yes"}
	})
	if config.WorkingDir != "/srv" || !config.Tty || !config.Stdin || !config.StdinOnce ||
		config.LogPath != "app/2.log" || config.Metadata.Attempt != 2 {
		t.Errorf("got %v", config)
	}
	if config.Image.Image != "sha256:1" || string(config.Envs[0].Value) != "1" || config.Command[0] != "run" ||
		config.Args[0] != "-x" {
		t.Errorf("got %v", config)
	}
	s := config.Linux.SecurityContext
	if s.RunAsUser.Value != 1 || s.RunAsGroup.Value != 8 || !s.NoNewPrivs || !s.ReadonlyRootfs ||
		s.Seccomp.ProfileType != cri.SecurityProfile_RuntimeDefault ||
		s.Apparmor.LocalhostRef != "mine" || !slices.Equal(s.SupplementalGroups, []int64{4, 5}) ||
		s.Capabilities.AddCapabilities[0] != "NET_ADMIN" || s.Capabilities.DropCapabilities[0] != "ALL" {
		t.Errorf("got %v", s)
	}
	if !slices.Contains(s.MaskedPaths, "/proc/kcore") || !slices.Contains(s.ReadonlyPaths, "/proc/sys") {
		t.Errorf("paths %v %v", s.MaskedPaths, s.ReadonlyPaths)
	}
	for key, want := range map[string]string{
		"io.kubernetes.container.restartCount": "2", "io.kubernetes.pod.terminationGracePeriod": "11",
		"io.kubernetes.container.terminationMessagePath":   "/dev/termination-log",
		"io.kubernetes.container.terminationMessagePolicy": "File",
		"nodeagent.keelson.dev/termination-message-file":   "/pods/term", "nodeagent.keelson.dev/image": "app:1",
		"more":         "yes",
		AnnotationHash: Hash(&pod.Spec.Containers[0]),
	} {
		if config.Annotations[key] != want {
			t.Errorf("annotation %s = %q, want %q", key, config.Annotations[key], want)
		}
	}
	if want := map[string]string{"io.kubernetes.pod.name": "web", "io.kubernetes.pod.namespace": "foo",
		"io.kubernetes.pod.uid": "u-1", "io.kubernetes.container.name": "app"}; !reflect.DeepEqual(config.Labels,
		want) {
		t.Errorf("labels %v", config.Labels)
	}
	wantMounts := []*cri.Mount{
		{HostPath: "/pods/hosts", ContainerPath: "/etc/hosts", Readonly: true},
		{HostPath: "/pods/term", ContainerPath: "/dev/termination-log"}}
	if len(config.Mounts) != 2 || config.Mounts[0].String() != wantMounts[0].String() ||
		config.Mounts[1].String() != wantMounts[1].String() {
		t.Errorf("mounts %v", config.Mounts)
	}
}

func TestOwnHostsFileStays(t *testing.T) {
	pod := named("web", func(s *corev1.PodSpec) {
		s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/etc/hosts/"}}
	})
	for _, mount := range container(t, pod, nil).Mounts {
		if mount.ContainerPath == "/etc/hosts" {
			t.Errorf("mounted over the container's own: %v", mount)
		}
	}
}

func TestUnmaskedProc(t *testing.T) {
	pod := named("web", func(s *corev1.PodSpec) {
		s.Containers[0].SecurityContext = &corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount),
			Privileged: ptr.To(true)}
	})
	if s := container(t, pod, nil).Linux.SecurityContext; len(s.MaskedPaths)+len(s.ReadonlyPaths) != 0 ||
		!s.Privileged {
		t.Errorf("got %v", s)
	}
}

// POD-063: runAsNonRoot
func TestRunAsNonRoot(t *testing.T) {
	for _, row := range []struct {
		name      string
		user      *int64
		image     ImageUser
		wantError string
	}{
		{"root image", nil, ImageUser{}, "container has runAsNonRoot and image will run as root"},
		{"root by number", nil, ImageUser{UID: ptr.To[int64](0)},
			"container has runAsNonRoot and image will run as root"},
		{"named user", nil, ImageUser{Name: "nobody"},
			"container has runAsNonRoot and image has non-numeric user (nobody), cannot verify user is non-root"},
		{"other number", nil, ImageUser{UID: ptr.To[int64](65534)}, ""},
		{"runAsUser 0", ptr.To[int64](0), ImageUser{UID: ptr.To[int64](1)},
			"container's runAsUser breaks non-root policy"},
		{"runAsUser wins over the image", ptr.To[int64](1), ImageUser{}, ""},
	} {
		pod := named("web", func(s *corev1.PodSpec) {
			s.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: row.user}
		})
		_, err := Container(input(pod, func(in *ContainerInput) { in.Image = row.image }))
		if (err == nil) != (row.wantError == "") || (err != nil && err.Error() != row.wantError) {
			t.Errorf("%s: got %v, want %q", row.name, err, row.wantError)
		}
		pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsNonRoot: ptr.To(false)}
		if _, err := Container(input(pod, func(in *ContainerInput) { in.Image = row.image })); err != nil {
			t.Errorf("%s, switched off for the container: %v", row.name, err)
		}
	}
}

func TestUserOfTheImage(t *testing.T) {
	pod := named("web", nil)
	s := container(t, pod,
		func(in *ContainerInput) { in.Image = ImageUser{UID: ptr.To[int64](12)} }).Linux.SecurityContext
	if s.RunAsUser.Value != 12 || s.RunAsUsername != "" {
		t.Errorf("got %v", s)
	}
	s = container(t, pod, func(in *ContainerInput) { in.Image = ImageUser{Name: "www"} }).Linux.SecurityContext
	if s.RunAsUser != nil || s.RunAsUsername != "www" {
		t.Errorf("got %v", s)
	}
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsGroup: ptr.To[int64](3)}
	s = container(t, pod, nil).Linux.SecurityContext
	if s.RunAsUser == nil || s.RunAsUser.Value != 0 || s.RunAsGroup.Value != 3 {
		t.Errorf("a group without user: %v", s)
	}
}

func TestSeccomp(t *testing.T) {
	profile := func(p *corev1.SeccompProfile, node Node) (*cri.SecurityProfile, error) {
		pod := named("web", func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext = &corev1.SecurityContext{
				SeccompProfile: p}
		})
		config, err := Container(input(pod, func(in *ContainerInput) { in.Node = node }))
		if err != nil {
			return nil, err
		}
		return config.Linux.SecurityContext.Seccomp, nil
	}
	node := Node{SeccompRoot: "/seccomp"}
	if p, _ := profile(nil, node); p.ProfileType != cri.SecurityProfile_Unconfined {
		t.Errorf("none: %v", p)
	}
	if p, _ := profile(nil, Node{SeccompDefault: true}); p.ProfileType != cri.SecurityProfile_RuntimeDefault {
		t.Errorf("default on: %v", p)
	}
	local := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: ptr.To("a/b.json")}
	if p, _ := profile(local, node); p.ProfileType != cri.SecurityProfile_Localhost ||
		p.LocalhostRef != "/seccomp/a/b.json" {
		t.Errorf("localhost: %v", p)
	}
	if _, err := profile(&corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost}, node); err == nil ||
		!strings.Contains(err.Error(), "localhostProfile") {
		t.Errorf("localhost without a name: %v", err)
	}
}

// nodeOf returns a node with the default settings of memory.
func nodeOf(t *testing.T, unified bool) Node {
	t.Helper()
	settings := memory.DefaultSettings()
	return nodeWith(t, settings, memory.Machine{CgroupV2: unified})
}

func nodeWith(t *testing.T, settings memory.Settings, machine memory.Machine) Node {
	t.Helper()
	rules, err := settings.Rules(machine)
	if err == nil {
		rules, err = rules.OnKernel(machine.CgroupV2)
	}
	if err != nil {
		t.Fatal(err)
	}
	return Node{Memory: rules}
}

// The runtime gets the sum of memory limit and swap, if there is a limit, for a new and for a resized container.
func TestSwapOfAContainer(t *testing.T) {
	settings := memory.DefaultSettings()
	settings.SwapBehavior = "LimitedSwap"
	node := nodeWith(t, settings, memory.Machine{CgroupV2: true, Memory: 4 << 30, Swap: 2 << 30})
	list := func(text string) corev1.ResourceList {
		if text == "" {
			return nil
		}
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(text)}
	}
	for _, row := range []struct {
		request, limit string
		both           int64
		swap           string
	}{
		{"1Gi", "2Gi", 2<<30 + 512<<20, "536870912"}, {"1Gi", "", 0, "536870912"}, {"1Gi", "1Gi", 1 << 30, "0"},
	} {
		pod := named("web", func(s *corev1.PodSpec) {
			s.Containers[0].Resources = corev1.ResourceRequirements{Requests: list(row.request),
				Limits: list(row.limit)}
		})
		pod.Status.QOSClass = corev1.PodQOSBurstable
		for name, got := range map[string]*cri.LinuxContainerResources{
			"new":     Resources(pod, &pod.Spec.Containers[0], node),
			"resized": Resized(pod, &pod.Spec.Containers[0], node)} {
			if got.MemorySwapLimitInBytes != row.both || got.Unified["memory.swap.max"] != row.swap {
				t.Errorf("%s, request %s, limit %q: %v", name, row.request, row.limit, got)
			}
		}
	}
}

// SAF-085, SAF-091, SAF-093: limits in the kernel's form; no memory QoS settings are written.
func TestResources(t *testing.T) {
	pod := named("web", func(s *corev1.PodSpec) {
		s.Containers[0].Resources = corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"),
				corev1.ResourceMemory: resource.MustParse("64Mi"),
				"hugepages-2Mi":       resource.MustParse("4Mi")},
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")},
		}
	})
	got := Resources(pod, &pod.Spec.Containers[0], Node{MemoryCapacity: 1 << 30})
	want := &cri.LinuxContainerResources{CpuShares: 256, CpuQuota: 50000, CpuPeriod: 100000,
		MemoryLimitInBytes: 64 << 20, OomScoreAdj: 999,
		HugepageLimits: []*cri.HugepageLimit{{PageSize: "2MB", Limit: 4 << 20}}}
	if got.String() != want.String() {
		t.Errorf("got %v\nwant %v", got, want)
	}
	got = Resources(pod, &pod.Spec.Containers[0], nodeOf(t, true))
	if _, ok := got.Unified["memory.min"]; ok || got.Unified["memory.high"] != "" ||
		got.Unified["memory.oom.group"] != "1" {
		t.Errorf("unified %v", got.Unified)
	}
	delete(pod.Spec.Containers[0].Resources.Requests, corev1.ResourceCPU)
	if got := Resources(pod, &pod.Spec.Containers[0], Node{}); got.CpuShares != 512 {
		t.Errorf("shares from the limit: %d", got.CpuShares)
	}
}

func TestHashFollowsTheImage(t *testing.T) {
	a, b := &corev1.Container{Name: "a", Image: "x:1"}, &corev1.Container{Name: "a", Image: "x:1", WorkingDir: "/w"}
	if Hash(a) != Hash(b) {
		t.Error("a field that cannot change matters")
	}
	b.Image = "x:2"
	if Hash(a) == Hash(b) {
		t.Error("the image does not matter")
	}
}

// A container with exclusive CPUs is bound to them, without a quota; one that shares has both.
func TestCPUs(t *testing.T) {
	for _, r := range []struct {
		cpus  CPUs
		quota int64
	}{{CPUs{}, 50000}, {CPUs{Set: "0,2"}, 50000}, {CPUs{Set: "1", Exclusive: true}, 0}} {
		got := r.cpus.Of(&cri.LinuxContainerResources{CpuShares: 512, CpuQuota: 50000, CpuPeriod: 100000})
		want := &cri.LinuxContainerResources{CpuShares: 512, CpuQuota: r.quota, CpuPeriod: 100000,
			CpusetCpus: r.cpus.Set}
		if got.String() != want.String() {
			t.Errorf("%+v: %v, want %v", r.cpus, got, want)
		}
	}
}
