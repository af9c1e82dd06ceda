package containerconfig

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/podenv"
)

// The files of every container come after its volumes, and are left out if the container mounts its own.
func TestMountsOfEveryContainer(t *testing.T) {
	volume := &cri.Mount{HostPath: "/v", ContainerPath: "/data"}
	hosts := &cri.Mount{HostPath: "/pods/hosts", ContainerPath: "/etc/hosts"}
	log := &cri.Mount{HostPath: "/pods/term", ContainerPath: "/dev/term"}
	at := func(path string) func(*corev1.Container) {
		return func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{{MountPath: "/x"}, {MountPath: path}} }
	}
	for name, row := range map[string]struct {
		change    func(*corev1.Container)
		hosts     string
		log, path string
		want      []*cri.Mount
	}{
		"both":                   {nil, "/pods/hosts", "/pods/term", "/dev/term", []*cri.Mount{volume, hosts, log}},
		"no hosts":               {nil, "", "/pods/term", "/dev/term", []*cri.Mount{volume, log}},
		"no file for a message":  {nil, "/pods/hosts", "", "/dev/term", []*cri.Mount{volume, hosts}},
		"no path for a message":  {nil, "/pods/hosts", "/pods/term", "", []*cri.Mount{volume, hosts}},
		"its own hosts":          {at("/etc/hosts"), "/pods/hosts", "", "", []*cri.Mount{volume}},
		"its own folder":         {at("/etc"), "/pods/hosts", "", "", []*cri.Mount{volume, hosts}},
		"a file of another name": {at("/etc/hosts.allow"), "/pods/hosts", "", "", []*cri.Mount{volume, hosts}},
	} {
		pod := named("web", func(s *corev1.PodSpec) {
			s.Containers[0].TerminationMessagePath = row.path
			if row.change != nil {
				row.change(&s.Containers[0])
			}
		})
		given := append(make([]*cri.Mount, 0, 8), volume)
		config := container(t, pod, func(in *ContainerInput) {
			in.HostsFile, in.TerminationLog, in.Mounts = row.hosts, row.log, given
		})
		if !reflect.DeepEqual(config.Mounts, row.want) {
			t.Errorf("%s: %v, want %v", name, config.Mounts, row.want)
		}
		if grown := given[:2]; grown[1] != nil {
			t.Errorf("%s: the volumes' list was written to", name)
		}
	}
	for readOnly, own := range map[bool]*corev1.SecurityContext{false: {},
		true: {ReadOnlyRootFilesystem: ptr.To(true)}} {
		pod := named("web", func(s *corev1.PodSpec) { s.Containers[0].SecurityContext = own })
		if got := container(t, pod, nil).Mounts[0]; got.Readonly != readOnly {
			t.Errorf("with a root that is read-only (%v) the hosts file is %v", readOnly, got)
		}
	}
}

// An instance has the annotations that a later agent needs, and other annotations cannot replace them.
func TestAnnotationsOfAnInstance(t *testing.T) {
	config := container(t, named("web", nil), func(in *ContainerInput) {
		in.Attempt = 0
		in.Annotations = map[string]string{"io.kubernetes.container.restartCount": "5", "example.com/led": "a"}
		in.CDIDevices = []*cri.CDIDevice{{Name: "example.com/led=a"}}
	})
	for key, want := range map[string]string{"io.kubernetes.pod.terminationGracePeriod": "30",
		"io.kubernetes.container.restartCount":             "0",
		"example.com/led":                                  "a",
		"io.kubernetes.container.terminationMessagePolicy": ""} {
		if got, ok := config.Annotations[key]; !ok || got != want {
			t.Errorf("%s is %q (%v), want %q", key, got, ok, want)
		}
	}
	if config.LogPath != "app/0.log" || config.Image.UserSpecifiedImage != "app:1" || config.Devices != nil ||
		len(config.CDIDevices) != 1 {
		t.Errorf("got %v", config)
	}
}

func TestVariablesKeepTheirOrder(t *testing.T) {
	config := container(t, named("web", nil), func(in *ContainerInput) {
		in.Env.Env = []podenv.Variable{{Name: "B", Value: "2"}, {Name: "A", Value: ""}, {Name: "C", Value: "\xff"}}
		in.Devices = []*cri.Device{{HostPath: "/dev/fuse"}}
	})
	want := []*cri.KeyValue{{Key: "B", Value: []byte("2")}, {Key: "A", Value: []byte{}},
		{Key: "C", Value: []byte{0xff}}}
	if !reflect.DeepEqual(config.Envs, want) {
		t.Errorf("got %v, want %v", config.Envs, want)
	}
	if len(config.Devices) != 1 || config.Devices[0].HostPath != "/dev/fuse" {
		t.Errorf("devices %v", config.Devices)
	}
}

// POD-228: a container's memory is bounded by its own limit, else by that of its Pod, else not at all.
func TestMemoryLimit(t *testing.T) {
	memory := func(text string) corev1.ResourceList {
		if text == "" {
			return nil
		}
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(text)}
	}
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	for name, row := range map[string]struct {
		own, pod corev1.ResourceList
		want     int64
	}{
		"none":                       {nil, nil, 0},
		"its own":                    {memory("1Mi"), nil, 1 << 20},
		"its own below the Pod's":    {memory("1Mi"), memory("2Mi"), 1 << 20},
		"the Pod's":                  {nil, memory("2Mi"), 2 << 20},
		"zero is none":               {memory("0"), memory("2Mi"), 2 << 20},
		"the Pod bounds another":     {nil, cpu, 0},
		"its own, and the Pod's cpu": {memory("1Mi"), cpu, 1 << 20},
		"cpu of both and no memory":  {cpu, cpu, 0},
		"one byte":                   {memory("1"), memory("2Mi"), 1},
	} {
		pod := named("web", func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = row.own
			if row.pod != nil {
				s.Resources = &corev1.ResourceRequirements{Limits: row.pod}
			}
		})
		for _, unified := range []bool{false, true} {
			got := Resources(pod, &pod.Spec.Containers[0], nodeOf(t, unified))
			swap := int64(0)
			if unified {
				swap = row.want
			}
			if got.MemoryLimitInBytes != row.want || got.MemorySwapLimitInBytes != swap ||
				(got.Unified != nil) != unified {
				t.Errorf("%s, unified %v: %v, want %d bytes", name, unified, got, row.want)
			}
		}
	}
}

// A container that requests no CPU has the least weight; zero is a request of its own.
func TestCPUOfAContainer(t *testing.T) {
	list := func(text string) corev1.ResourceList {
		if text == "" {
			return nil
		}
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(text)}
	}
	for _, row := range []struct {
		request, limit string
		shares, quota  int64
	}{
		{"", "", 2, 0}, {"500m", "", 512, 0}, {"", "500m", 512, 50000}, {"0", "500m", 2, 50000},
		{"250m", "1", 256, 100000},
	} {
		pod := named("web", func(s *corev1.PodSpec) {
			s.Containers[0].Resources = corev1.ResourceRequirements{Requests: list(row.request),
				Limits: list(row.limit)}
		})
		got := Resources(pod, &pod.Spec.Containers[0], Node{})
		if got.CpuShares != row.shares || got.CpuQuota != row.quota || got.CpuPeriod != 100000 {
			t.Errorf("request %q, limit %q: %v", row.request, row.limit, got)
		}
	}
}

// On a host with SELinux the files that the node creates for a container get its label, and on others nothing does.
func TestLabelsOfTheNodesFiles(t *testing.T) {
	pod := named("web", func(s *corev1.PodSpec) { s.Containers[0].TerminationMessagePath = "/dev/termination-log" })
	for _, has := range []bool{true, false} {
		config := container(t, pod, func(in *ContainerInput) { in.SELinux = has })
		if len(config.Mounts) != 2 || config.Mounts[0].SelinuxRelabel != has || config.Mounts[1].SelinuxRelabel != has {
			t.Errorf("with SELinux %v: %v", has, config.Mounts)
		}
	}
}

// An instance lists its image volumes, so that the images are kept while it exists.
func TestVolumeImagesStandAtTheInstance(t *testing.T) {
	const key = "nodeagent.keelson.dev/volume-images"
	config := container(t, named("web", nil), func(in *ContainerInput) {
		in.VolumeImages = map[string]string{"b": "sha256:1", "a": "sha256:2"}
	})
	if got := config.Annotations[key]; got != "sha256:1,sha256:2" {
		t.Errorf("of two: %q", got)
	}
	if got, there := container(t, named("web", nil), nil).Annotations[key]; there {
		t.Errorf("of none: %q", got)
	}
}
