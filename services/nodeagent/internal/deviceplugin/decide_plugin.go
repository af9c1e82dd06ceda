package deviceplugin

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"keelson.dev/kit/podspec"
	"keelson.dev/services/nodeagent/internal/pluginsocket"
)

// grace is how long the capacity of an absent plugin stays, the same as the kubelet's.
const grace = 5 * time.Minute

// longestID is the maximum length of a device's ID.
const longestID = 253

// Grant is what a plugin adds to a container.
type Grant struct {
	Envs        map[string]string `json:"envs,omitempty"`
	Mounts      []Mount           `json:"mounts,omitempty"`
	Nodes       []Node            `json:"nodes,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// CDI are the names of devices that the runtime knows.
	CDI []string `json:"cdi,omitempty"`
	// PreStart lists the resources whose plugins must be called before each start of the container.
	PreStart []corev1.ResourceName `json:"preStart,omitempty"`
}

// Mount shows a path of the host in a container.
type Mount struct {
	Host      string `json:"host"`
	Container string `json:"container"`
	ReadOnly  bool   `json:"readOnly,omitempty"`
}

// Node is a device file.
type Node struct {
	Host        string `json:"host"`
	Container   string `json:"container"`
	Permissions string `json:"permissions"`
}

// checkPlugin returns an error if a plugin cannot be accepted.
func checkPlugin(name string, versions ...string) error {
	switch {
	case !podspec.IsExtended(corev1.ResourceName(name)):
		return fmt.Errorf("the resource name %q of a device plugin is invalid: it must be that of an extended "+
			"resource, a domain that is not kubernetes.io, a slash and a name", pluginsocket.Clip(name))
	case !slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(api.SupportedVersions[:], v) }):
		return fmt.Errorf("the plugin of %s speaks none of the versions of the device plugin API that this node "+
			"does: %s", name, strings.Join(api.SupportedVersions[:], ", "))
	}
	return nil
}

// checkEndpoint returns an error if a plugin cannot serve at that name in the folder of sockets.
func checkEndpoint(resource, endpoint string) error {
	if endpoint == "" || endpoint != filepath.Base(endpoint) || !filepath.IsLocal(endpoint) || endpoint == "." ||
		endpoint == socketName {
		return fmt.Errorf("the endpoint %q of the plugin of %s must be the name of a socket in the folder of %s",
			pluginsocket.Clip(endpoint), resource, socketName)
	}
	return nil
}

// healthOf reads a list of devices; it leaves out those with an unusable ID and returns these IDs.
func healthOf(list *api.ListAndWatchResponse) (healthy map[string]bool, refused []string) {
	healthy = map[string]bool{}
	for _, device := range list.GetDevices() {
		id := device.GetID()
		if id == "" || len(id) > longestID || strings.ToValidUTF8(id, "") != id {
			refused = append(refused, pluginsocket.Clip(id))
			continue
		}
		healthy[id] = device.GetHealth() == api.Healthy
	}
	return healthy, refused
}

// grantOf converts what a plugin gives one container.
func grantOf(resource corev1.ResourceName, answer *api.AllocateResponse) (Grant, error) {
	if n := len(answer.GetContainerResponses()); n != 1 {
		return Grant{}, fmt.Errorf("the plugin of %s answers about %d containers: it was asked about 1", resource, n)
	}
	given := answer.GetContainerResponses()[0]
	out := Grant{Envs: maps.Clone(given.GetEnvs()), Annotations: maps.Clone(given.GetAnnotations())}
	for _, m := range given.GetMounts() {
		if !filepath.IsAbs(m.GetHostPath()) || !filepath.IsAbs(m.GetContainerPath()) {
			return Grant{}, fmt.Errorf("the plugin of %s gives the mount of %q at %q: both must be absolute paths",
				resource, pluginsocket.Clip(m.GetHostPath()), pluginsocket.Clip(m.GetContainerPath()))
		}
		out.Mounts = append(out.Mounts, Mount{Host: m.GetHostPath(), Container: m.GetContainerPath(),
			ReadOnly: m.GetReadOnly()})
	}
	for _, d := range given.GetDevices() {
		if !filepath.IsAbs(d.GetHostPath()) || !filepath.IsAbs(d.GetContainerPath()) {
			return Grant{}, fmt.Errorf("the plugin of %s gives the device %q at %q: both must be absolute paths",
				resource, pluginsocket.Clip(d.GetHostPath()), pluginsocket.Clip(d.GetContainerPath()))
		}
		if p := d.GetPermissions(); strings.Trim(p, "rwm") != "" {
			return Grant{}, fmt.Errorf("the plugin of %s gives the device %q the permissions %q: only r, w and m "+
				"are known", resource, pluginsocket.Clip(d.GetHostPath()), pluginsocket.Clip(p))
		}
		out.Nodes = append(out.Nodes, Node{Host: d.GetHostPath(), Container: d.GetContainerPath(),
			Permissions: d.GetPermissions()})
	}
	for _, d := range given.GetCdiDevices() {
		out.CDI = append(out.CDI, d.GetName())
	}
	return out, nil
}

// with adds what another plugin gives the container. The earlier plugin's values win.
func (g Grant) with(other Grant) Grant {
	out := Grant{Envs: maps.Clone(other.Envs), Annotations: maps.Clone(other.Annotations),
		Mounts: slices.Clone(g.Mounts), Nodes: slices.Clone(g.Nodes), CDI: slices.Clone(g.CDI),
		PreStart: slices.Concat(g.PreStart, other.PreStart)}
	out.Envs, out.Annotations = over(out.Envs, g.Envs), over(out.Annotations, g.Annotations)
	for _, m := range other.Mounts {
		if !slices.ContainsFunc(out.Mounts, func(has Mount) bool { return has.Container == m.Container }) {
			out.Mounts = append(out.Mounts, m)
		}
	}
	for _, d := range other.Nodes {
		if !slices.ContainsFunc(out.Nodes, func(has Node) bool { return has.Container == d.Container }) {
			out.Nodes = append(out.Nodes, d)
		}
	}
	for _, name := range other.CDI {
		if !slices.Contains(out.CDI, name) {
			out.CDI = append(out.CDI, name)
		}
	}
	return out
}

// over merges one map into another, which it changes; above wins.
func over(below, above map[string]string) map[string]string {
	if below == nil {
		return maps.Clone(above)
	}
	maps.Copy(below, above)
	return below
}

// source is what is known of the plugin of a resource.
type source struct {
	// Devices maps IDs to whether the device is healthy; none counts as healthy while the plugin is away.
	Devices map[string]bool
	// Live means that the plugin is present and has reported its devices.
	Live bool
	// GoneAt is when it left; zero if it was not present since the agent started.
	GoneAt time.Time
}

// amounts returns what the Node has of the resources: all devices, and the healthy ones. The devices of an absent
// plugin count in the capacity for a while; after that the resource stays with an amount of zero.
func amounts(sources map[corev1.ResourceName]source, now time.Time) (capacity, allocatable corev1.ResourceList) {
	capacity, allocatable = corev1.ResourceList{}, corev1.ResourceList{}
	for name, s := range sources {
		all, healthy := len(s.Devices), 0
		for _, well := range s.Devices {
			if well && s.Live {
				healthy++
			}
		}
		if !s.Live && now.Sub(s.GoneAt) >= grace {
			all = 0
		}
		capacity[name] = *resource.NewQuantity(int64(all), resource.DecimalSI)
		allocatable[name] = *resource.NewQuantity(int64(healthy), resource.DecimalSI)
	}
	return capacity, allocatable
}

// healths returns the health of the devices of a Pod's containers.
func healths(allocation Allocation, sources map[corev1.ResourceName]source) map[string][]corev1.ResourceStatus {
	out := map[string][]corev1.ResourceStatus{}
	for container, devices := range allocation {
		for _, name := range slices.Sorted(maps.Keys(devices)) {
			s := corev1.ResourceStatus{Name: name}
			for _, id := range devices[name] {
				health := corev1.ResourceHealthStatusUnhealthy
				switch {
				case !sources[name].Live:
					health = corev1.ResourceHealthStatusUnknown
				case sources[name].Devices[id]:
					health = corev1.ResourceHealthStatusHealthy
				}
				s.Resources = append(s.Resources, corev1.ResourceHealth{ResourceID: corev1.ResourceID(id),
					Health: health})
			}
			out[container] = append(out[container], s)
		}
	}
	return out
}
