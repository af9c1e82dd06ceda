package deviceplugin

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

func TestCheckPlugin(t *testing.T) {
	for _, row := range []struct{ name, version, want string }{
		{"example.com/led", "v1beta1", ""},
		{"example.com/led", "v1alpha", "none of the versions"},
		{"example.com/led", "", "none of the versions"},
		{"led", "v1beta1", "extended resource"},
		{"", "v1beta1", "extended resource"},
		{"kubernetes.io/led", "v1beta1", "extended resource"},
		{"requests.example.com/led", "v1beta1", "extended resource"},
		{"example.com/le/d", "v1beta1", "extended resource"},
		{"../led", "v1beta1", "extended resource"},
		{"example.com/" + strings.Repeat("x", 64), "v1beta1", "extended resource"},
	} {
		got := says(checkPlugin(row.name, row.version))
		if row.want == "" && got != "" || !strings.Contains(got, row.want) {
			t.Errorf("%q %q: %q, want %q", row.name, row.version, got, row.want)
		}
	}
}

func TestCheckEndpoint(t *testing.T) {
	for endpoint, ok := range map[string]bool{"led.sock": true, "": false, ".": false, "..": false,
		"../led.sock": false, "a/b.sock": false, "/led.sock": false, "kubelet.sock": false} {
		if err := checkEndpoint("example.com/led", endpoint); (err == nil) != ok {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

func says(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Devices of a plugin that is away count to the capacity for five minutes, and are not to be had at once.
func TestAmounts(t *testing.T) {
	now := time.Unix(1e9, 0)
	for name, row := range map[string]struct {
		source    source
		all, well int64
	}{
		"all healthy":            {source{lights("a b"), true, time.Time{}}, 2, 2},
		"one broken":             {source{lights("a b!"), true, time.Time{}}, 2, 1},
		"none":                   {source{nil, true, time.Time{}}, 0, 0},
		"away":                   {source{lights("a b"), false, now}, 2, 0},
		"almost five minutes":    {source{lights("a b"), false, now.Add(-grace + 1)}, 2, 0},
		"five minutes":           {source{lights("a b"), false, now.Add(-grace)}, 0, 0},
		"not since the start":    {source{}, 0, 0},
		"back after a long time": {source{lights("a"), true, now.Add(-grace)}, 1, 1},
	} {
		capacity, allocatable := amounts(map[corev1.ResourceName]source{led: row.source}, now)
		all, well := capacity[led], allocatable[led]
		if len(capacity) != 1 || len(allocatable) != 1 || all.Value() != row.all || well.Value() != row.well {
			t.Errorf("%s: %v and %v, want %d and %d", name, capacity, allocatable, row.all, row.well)
		}
	}
}

func TestHealths(t *testing.T) {
	allocation := Allocation{"c": {led: {"a", "b", "z"}, "example.com/x": {"a"}}}
	got := healths(allocation, map[corev1.ResourceName]source{led: {Devices: lights("a b!"), Live: true},
		"example.com/x": {Devices: lights("a"), Live: false}})
	want := map[string][]corev1.ResourceStatus{"c": {
		{Name: led, Resources: []corev1.ResourceHealth{{ResourceID: "a", Health: "Healthy"},
			{ResourceID: "b", Health: "Unhealthy"}, {ResourceID: "z", Health: "Unhealthy"}}},
		{Name: "example.com/x", Resources: []corev1.ResourceHealth{{ResourceID: "a", Health: "Unknown"}}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestHealthOf(t *testing.T) {
	longest := strings.Repeat("x", 253)
	list := &api.ListAndWatchResponse{}
	for id, health := range map[string]string{"a": "Healthy", "b": "Unhealthy", "c": "", "": "Healthy",
		"\xff": "Healthy", longest: "Healthy", longest + "x": "Healthy"} {
		list.Devices = append(list.Devices, &api.Device{ID: id, Health: health})
	}
	got, refused := healthOf(list)
	if want := map[string]bool{"a": true, "b": false, "c": false, longest: true}; !reflect.DeepEqual(got, want) ||
		len(refused) != 3 {
		t.Errorf("%v without %q", got, refused)
	}
}

func TestGrantOf(t *testing.T) {
	good := &api.ContainerAllocateResponse{Envs: map[string]string{"LED": "a"},
		Mounts:      []*api.Mount{{HostPath: "/h", ContainerPath: "/c", ReadOnly: true}},
		Devices:     []*api.DeviceSpec{{HostPath: "/dev/a", ContainerPath: "/dev/b", Permissions: "rw"}},
		Annotations: map[string]string{"k": "v"}, CdiDevices: []*api.CDIDevice{{Name: "example.com/led=a"}}}
	got, err := grantOf(led, &api.AllocateResponse{ContainerResponses: []*api.ContainerAllocateResponse{good}})
	want := Grant{Envs: map[string]string{"LED": "a"}, Mounts: []Mount{{"/h", "/c", true}},
		Nodes: []Node{{"/dev/a", "/dev/b", "rw"}}, Annotations: map[string]string{"k": "v"},
		CDI: []string{"example.com/led=a"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for want, bad := range map[string][]*api.ContainerAllocateResponse{
		"about 0 containers":   nil,
		"about 2 containers":   {good, good},
		`mount of "h" at "/c"`: {{Mounts: []*api.Mount{{HostPath: "h", ContainerPath: "/c"}}}},
		`mount of "/h" at ""`:  {{Mounts: []*api.Mount{{HostPath: "/h"}}}},
		`device "" at "/c"`:    {{Devices: []*api.DeviceSpec{{ContainerPath: "/c"}}}},
		`device "/h" at "c"`:   {{Devices: []*api.DeviceSpec{{HostPath: "/h", ContainerPath: "c"}}}},
		`permissions "rx": only r, w`: {{Devices: []*api.DeviceSpec{{HostPath: "/h", ContainerPath: "/c",
			Permissions: "rx"}}}},
	} {
		_, err := grantOf(led, &api.AllocateResponse{ContainerResponses: bad})
		if !strings.Contains(says(err), want) || strings.Contains(says(err), "\n") {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// Of two plugins that give the same, the first by name wins.
func TestWith(t *testing.T) {
	a := Grant{Envs: map[string]string{"X": "a"}, Mounts: []Mount{{"/1", "/c", false}},
		Nodes: []Node{{"/1", "/d", "r"}}, Annotations: map[string]string{"k": "a"}, CDI: []string{"x=1"},
		PreStart: []corev1.ResourceName{"a.b/c"}}
	b := Grant{Envs: map[string]string{"X": "b", "Y": "b"}, Mounts: []Mount{{"/2", "/c", true}, {"/2", "/e", false}},
		Nodes: []Node{{"/2", "/d", "w"}, {"/2", "/f", "w"}}, Annotations: map[string]string{"k": "b", "l": "b"},
		CDI: []string{"x=1", "x=2"}, PreStart: []corev1.ResourceName{led}}
	want := Grant{Envs: map[string]string{"X": "a", "Y": "b"},
		Mounts:      []Mount{{"/1", "/c", false}, {"/2", "/e", false}},
		Nodes:       []Node{{"/1", "/d", "r"}, {"/2", "/f", "w"}},
		Annotations: map[string]string{"k": "a", "l": "b"}, CDI: []string{"x=1", "x=2"},
		PreStart: []corev1.ResourceName{"a.b/c", led}}
	if got := a.with(b); !reflect.DeepEqual(got, want) || b.Envs["X"] != "b" {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := (Grant{}).with(a); !reflect.DeepEqual(got, a) {
		t.Errorf("after nothing: %+v", got)
	}
}
