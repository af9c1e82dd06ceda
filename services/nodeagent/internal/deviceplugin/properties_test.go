package deviceplugin

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"pgregory.net/rapid"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// lamp is a plugin in memory. It prefers the last of the devices that it may choose from.
type lamp struct {
	api.DevicePluginClient
	// fails is the error of Allocate; nil for success.
	fails error
	calls []string
}

func (l *lamp) GetPreferredAllocation(_ context.Context, in *api.PreferredAllocationRequest, _ ...grpc.CallOption) (
	*api.PreferredAllocationResponse, error) {
	ask := in.GetContainerRequests()[0]
	slices.Reverse(ask.AvailableDeviceIDs)
	return &api.PreferredAllocationResponse{ContainerResponses: []*api.ContainerPreferredAllocationResponse{
		{DeviceIDs: ask.GetAvailableDeviceIDs()[:ask.GetAllocationSize()]}}}, nil
}

func (l *lamp) Allocate(_ context.Context, in *api.AllocateRequest, _ ...grpc.CallOption) (*api.AllocateResponse,
	error) {
	ids := strings.Join(in.GetContainerRequests()[0].GetDevicesIds(), " ")
	l.calls = append(l.calls, "allocate "+ids)
	if l.fails != nil {
		return nil, l.fails
	}
	return &api.AllocateResponse{ContainerResponses: []*api.ContainerAllocateResponse{
		{Envs: map[string]string{"LED": ids}}}}, nil
}

func (l *lamp) PreStartContainer(_ context.Context, in *api.PreStartContainerRequest, _ ...grpc.CallOption) (
	*api.PreStartContainerResponse, error) {
	l.calls = append(l.calls, "start "+strings.Join(in.GetDevicesIds(), " "))
	return &api.PreStartContainerResponse{}, nil
}

// opened returns a Manager of a folder whose Changed and Affected do nothing.
func opened(t interface{ Fatal(...any) }, dir string, refuse func(types.UID, podstate.Outcome)) *Manager {
	m, err := Open(Config{Root: dir, Log: zap.NewNop(), Changed: func() {}, Affected: func(types.UID) {},
		Returned: func(types.UID) {}, Refuse: refuse})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// plugIn makes a plugin serve devices.
func plugIn(t interface{ Fatal(...any) }, m *Manager, l *lamp, options *api.DevicePluginOptions, ids string) *session {
	if err := m.records.know(led); err != nil {
		t.Fatal(err)
	}
	s := &session{name: led, client: l, options: options}
	m.mu.Lock()
	m.plugins[led] = &plugin{session: s}
	m.mu.Unlock()
	m.learn(s, lights(ids))
	return s
}

// resident is a Pod with its live containers, and their devices.
type resident struct {
	pod   *corev1.Pod
	next  int
	ready bool
	ended bool
	lives map[string]string
}

// node is a machine on which anything may die at any time.
type node struct {
	*rapid.T
	dir     string
	m       *Manager
	lamp    *lamp
	pods    []*resident
	refused map[types.UID]bool
	made    int
}

// No device is ever assigned to two live containers, and none changes hands while its container lives, whether the
// plugin, its devices, the agent or the records fail.
func TestNoDeviceIsGivenTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		n := &node{T: rt, dir: dir, lamp: &lamp{}, refused: map[types.UID]bool{}}
		n.m = opened(rt, dir, n.refuse)
		n.plugin()
		rt.Repeat(map[string]func(*rapid.T){
			"":        func(*rapid.T) { n.check() },
			"plugin":  func(*rapid.T) { n.plugin() },
			"away":    func(*rapid.T) { n.m.mu.Lock(); n.m.plugins[led].Live = false; n.m.mu.Unlock() },
			"fail":    func(*rapid.T) { n.lamp.fails = status.Error(codes.Internal, "no") },
			"mend":    func(*rapid.T) { n.lamp.fails = nil },
			"pod":     func(*rapid.T) { n.arrive() },
			"set up":  func(*rapid.T) { n.with(n.setUp) },
			"start":   func(*rapid.T) { n.with(n.start) },
			"end":     func(*rapid.T) { n.with(n.end) },
			"damage":  func(*rapid.T) { n.with(n.damage) },
			"restart": func(*rapid.T) { n.restart() },
			"die": func(*rapid.T) {
				place := rapid.SampledFrom([]string{"choose", "allocate", "free"}).Draw(rt, "where")
				place = "nodeagent/device." + place + rapid.SampledFrom([]string{".before", ".after"}).Draw(rt, "when")
				if err := failpoint.Arm(place, "error(killed)"); err != nil {
					rt.Fatal(err)
				}
				n.with(rapid.SampledFrom([]func(*resident){n.setUp, n.end}).Draw(rt, "doing what"))
				failpoint.Disarm(place)
				n.restart()
			},
		})
	})
}

func (n *node) refuse(uid types.UID, _ podstate.Outcome) { n.refused[uid] = true }

func (n *node) with(do func(*resident)) {
	if len(n.pods) > 0 {
		do(rapid.SampledFrom(n.pods).Draw(n.T, "pod"))
	}
}

// plugin registers with other devices.
func (n *node) plugin() {
	ids := strings.Fields("a b c d")[:rapid.IntRange(0, 4).Draw(n.T, "devices")]
	for i := range ids {
		if rapid.IntRange(0, 4).Draw(n.T, "health") == 0 {
			ids[i] += "!"
		}
	}
	plugIn(n.T, n.m, n.lamp, &api.DevicePluginOptions{PreStartRequired: rapid.Bool().Draw(n.T, "pre-start"),
		GetPreferredAllocationAvailable: rapid.Bool().Draw(n.T, "prefers")}, strings.Join(ids, " "))
}

func (n *node) arrive() {
	n.made++
	var containers []string
	kinds := rapid.SliceOfN(rapid.SampledFrom([]string{"init", "sidecar", "main"}), 1, 4).Draw(n.T, "containers")
	for i, kind := range kinds {
		containers = append(containers, kind+" c"+strconv.Itoa(i)+" "+
			strconv.Itoa(rapid.IntRange(0, 2).Draw(n.T, "wants")))
	}
	pod := podOf(types.UID("p"+strconv.Itoa(n.made)), containers...)
	if n.m.Admit(pod) == nil {
		n.pods = append(n.pods, &resident{pod: pod, lives: map[string]string{}})
	}
}

func (n *node) setUp(r *resident) {
	if r.ended {
		return
	}
	if err := n.m.SetUp(n.Context(), r.pod); err == nil {
		r.ready = true
	} else if n.refused[r.pod.UID] && !errors.Is(err, failpoint.ErrInjected) {
		n.end(r)
	}
}

// start starts the next container, after the init container before it has ended; or the last one again.
func (n *node) start(r *resident) {
	entries := lifecycle.Entries(r.pod)
	if !r.ready {
		return
	}
	i := min(r.next, len(entries)-1)
	entry := entries[i]
	if i > 0 && entries[i-1].Kind == lifecycle.Init {
		delete(r.lives, entries[i-1].Spec.Name)
	}
	grant, err := n.m.Container(n.Context(), r.pod, entry.Spec)
	if err != nil {
		return
	}
	before, lived := r.lives[entry.Spec.Name]
	wanted := entry.Spec.Resources.Limits[led]
	now := grant.Envs["LED"]
	switch {
	case lived && before != now:
		n.Fatalf("container %s of %s had %q and gets %q", entry.Spec.Name, r.pod.UID, before, now)
	case len(strings.Fields(now)) != int(wanted.Value()):
		n.Fatalf("container %s of %s wants %v and gets %q", entry.Spec.Name, r.pod.UID, wanted.Value(), now)
	}
	r.lives[entry.Spec.Name] = now
	r.next = i + 1
	r.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "any", ContainerID: "x://1"}}
}

// end ends a Pod: first its containers, then the rest.
func (n *node) end(r *resident) {
	clear(r.lives)
	r.ready, r.ended = false, true
	if rapid.Bool().Draw(n.T, "it says that it stopped") {
		n.m.Stopped(r.pod.UID)
	}
	if err := n.m.TearDown(r.pod.UID); err == nil {
		n.pods = slices.DeleteFunc(n.pods, func(other *resident) bool { return other == r })
	}
}

func (n *node) damage(r *resident) {
	file := n.m.records.file(r.pod.UID)
	data, err := os.ReadFile(file)
	if err != nil {
		return
	}
	data = []byte(strings.ReplaceAll(string(data), `"a"`, `"b"`))
	if rapid.Bool().Draw(n.T, "cut") {
		data = data[:len(data)/2]
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		n.Fatal(err)
	}
}

// restart makes the next agent load what is on disk. It admits again the Pods of which it has started nothing.
func (n *node) restart() {
	n.m = opened(n.T, n.dir, n.refuse)
	if n.m.plugins[led] == nil {
		n.Fatal("the resource is forgotten")
	}
	if rapid.Bool().Draw(n.T, "the plugin is first") {
		n.plugin()
	}
	for _, r := range slices.Clone(n.pods) {
		r.ready = false
		if !lifecycle.Began(r.pod) && n.m.Admit(r.pod) != nil {
			n.end(r)
		}
	}
}

func (n *node) check() {
	holder := map[string]string{}
	for _, r := range n.pods {
		for container, ids := range r.lives {
			me := string(r.pod.UID) + "/" + container
			for _, id := range strings.Fields(ids) {
				if other := holder[id]; other != "" {
					n.Fatalf("%s and %s both have device %s", other, me, id)
				}
				holder[id] = me
			}
		}
	}
}
