package deviceplugin

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"keelson.dev/services/nodeagent/internal/plainfile"
	"keelson.dev/services/nodeagent/internal/pluginsocket"
	"keelson.dev/services/nodeagent/internal/podstate"
)

// served is a plugin behind a real socket.
type served struct {
	api.UnimplementedDevicePluginServer
	lists   chan *api.ListAndWatchResponse
	options *api.DevicePluginOptions
}

func (s *served) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return s.options, nil
}

func (s *served) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	for {
		select {
		case list, more := <-s.lists:
			if !more {
				return nil
			}
			if err := stream.Send(list); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return nil
		}
	}
}

func listOf(ids string) *api.ListAndWatchResponse {
	out := &api.ListAndWatchResponse{}
	for id, healthy := range lights(ids) {
		health := api.Unhealthy
		if healthy {
			health = api.Healthy
		}
		out.Devices = append(out.Devices, &api.Device{ID: id, Health: health})
	}
	return out
}

// rig is a running Manager.
type rig struct {
	*Manager
	*testing.T
	changed chan struct{}
	mu      sync.Mutex // guards the fields below
	touched map[types.UID]int
	back    []types.UID
}

func newRig(t *testing.T) *rig {
	dir, err := os.MkdirTemp("", "dp") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, changed: make(chan struct{}, 100), touched: map[types.UID]int{}}
	r.Manager, err = Open(Config{Root: dir, Log: zap.NewNop(), Changed: func() { r.changed <- struct{}{} },
		Affected: func(uid types.UID) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.touched[uid]++
		}, Returned: func(uid types.UID) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.back = append(r.back, uid)
		}, Refuse: func(types.UID, podstate.Outcome) {}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// run starts the Manager, and ends it with the test.
func (r *rig) run() {
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Manager.Run(ctx)
	}()
	r.Cleanup(func() {
		cancel()
		<-done
		_ = os.RemoveAll(r.Root)
	})
	r.await("the socket to be there", func() bool {
		_, err := os.Stat(filepath.Join(r.Dir(), socketName))
		return err == nil
	})
}

func (r *rig) await(what string, is func() bool) {
	r.Helper()
	late := time.After(30 * time.Second)
	for !is() {
		select {
		case <-r.changed:
		case <-time.After(10 * time.Millisecond):
		case <-late:
			r.Fatalf("waited too long for %s", what)
		}
	}
}

// awaitAmounts waits for the Node's amounts.
func (r *rig) awaitAmounts(all, well int64) {
	r.Helper()
	r.await("the amounts", func() bool {
		capacity, allocatable := r.Amounts()
		c, a := capacity[led], allocatable[led]
		return c.Value() == all && a.Value() == well
	})
}

// serve serves a plugin at a socket.
func (r *rig) serve(path, ids string) (*served, func()) {
	r.Helper()
	s := &served{lists: make(chan *api.ListAndWatchResponse, 10),
		options: &api.DevicePluginOptions{PreStartRequired: true}}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		r.Fatal(err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		r.Fatal(err)
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, s)
	go func() { _ = server.Serve(listener) }()
	r.Cleanup(server.Stop)
	s.lists <- listOf(ids)
	return s, server.Stop
}

func (r *rig) register(in *api.RegisterRequest) error {
	r.Helper()
	conn, err := pluginsocket.Connect(plainfile.Root(r.Root), filepath.Join(r.Dir(), socketName))
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close()
	_, err = api.NewRegistrationClient(conn).Register(r.Context(), in)
	return err
}

// A plugin that registers gives the node its devices and reports their health; when it leaves, none of its devices
// can be assigned until it registers again.
func TestRegister(t *testing.T) {
	r := newRig(t)
	old := filepath.Join(r.Dir(), "old.sock")
	r.serve(old, "")
	r.run()
	if _, err := os.Lstat(old); err == nil {
		t.Error("an old socket is left: its plugin does not notice that it has to register")
	}
	plugin, stop := r.serve(filepath.Join(r.Dir(), "led.sock"), "a b!")
	in := &api.RegisterRequest{Version: api.Version, Endpoint: "led.sock", ResourceName: string(led)}
	if r.Manages(led) {
		t.Error("managed before there was a plugin")
	}
	if err := r.register(in); err != nil {
		t.Fatal(err)
	}
	r.awaitAmounts(2, 1)
	if !r.Manages(led) {
		t.Error("the resource is not managed")
	}
	pod := podOf("p", "main c 1")
	if why := r.Admit(pod); why != nil {
		t.Fatal(why)
	}
	plugin.lists <- listOf("a! b")
	r.await("the Pod's device to be broken", func() bool {
		return r.Health("p")["c"][0].Resources[0].Health == corev1.ResourceHealthStatusUnhealthy
	})
	r.await("the Pod to be told", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.touched["p"] > 0
	})
	stop()
	r.awaitAmounts(2, 0)
	if health := r.Health("p")["c"][0].Resources[0].Health; health != corev1.ResourceHealthStatusUnknown {
		t.Errorf("the device of a plugin that is away is %s", health)
	}
	why := r.Admit(podOf("q", "main c 1"))
	if why == nil || why.Reason != "UnexpectedAdmissionError" || why.Message != "Allocate failed due to no healthy "+
		"devices present; cannot allocate unhealthy devices example.com/led, which is unexpected" {
		t.Errorf("a Pod is told %+v", why)
	}
	r.serve(filepath.Join(r.Dir(), "again.sock"), "a b c")
	in.Endpoint = "again.sock"
	if err := r.register(in); err != nil {
		t.Fatal(err)
	}
	r.awaitAmounts(3, 3)
	r.await("the Pod to be told that its plugin is back", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.back) == 1 && r.back[0] == "p"
	})
}

// A plugin that registers for the resource of another one replaces it.
func TestRegisterAgain(t *testing.T) {
	r := newRig(t)
	r.run()
	first, _ := r.serve(filepath.Join(r.Dir(), "1.sock"), "a")
	r.serve(filepath.Join(r.Dir(), "2.sock"), "a b")
	for i, endpoint := range []string{"1.sock", "2.sock"} {
		if err := r.register(&api.RegisterRequest{Version: api.Version, Endpoint: endpoint,
			ResourceName: string(led)}); err != nil {
			t.Fatal(err)
		}
		r.awaitAmounts(int64(i+1), int64(i+1))
	}
	first.lists <- listOf("a b c")
	if why := r.Admit(podOf("p", "main c 3")); why == nil {
		t.Error("the first plugin is still listened to")
	}
}

// A plugin that is refused gets the reason in one sentence.
func TestRegisterRefuses(t *testing.T) {
	r := newRig(t)
	r.run()
	outside := filepath.Join(t.TempDir(), "o.sock")
	r.serve(outside, "a")
	if err := os.Symlink(outside, filepath.Join(r.Dir(), "link.sock")); err != nil {
		t.Fatal(err)
	}
	for want, in := range map[string]*api.RegisterRequest{
		"none of the versions":      {Version: "v1", Endpoint: "led.sock", ResourceName: string(led)},
		"extended resource":         {Version: api.Version, Endpoint: "led.sock", ResourceName: "led"},
		"the name of a socket":      {Version: api.Version, Endpoint: "../led.sock", ResourceName: string(led)},
		"must be the path of a":     {Version: api.Version, Endpoint: "led.sock", ResourceName: string(led)},
		"without symbolic links":    {Version: api.Version, Endpoint: "link.sock", ResourceName: string(led)},
		`endpoint "kubelet.sock" o`: {Version: api.Version, Endpoint: "kubelet.sock", ResourceName: string(led)},
	} {
		if err := r.register(in); !strings.Contains(says(err), want) || strings.Contains(says(err), "\n") {
			t.Errorf("%v: %v, want %q", in, err, want)
		}
	}
	if capacity, _ := r.Amounts(); len(capacity) > 0 {
		t.Errorf("the node has %v", capacity)
	}
}

// A plugin in the folder of all kinds of plugins is asked for its options, is followed again when its stream
// breaks, and ends when it is withdrawn.
func TestTakeIn(t *testing.T) {
	r := newRig(t)
	r.run()
	path := filepath.Join(r.Root, "plugins", "led.sock")
	plugin, _ := r.serve(path, "a")
	info := &registration.PluginInfo{Type: registration.DevicePlugin, Name: "led",
		SupportedVersions: []string{"v1beta1"}}
	if _, err := r.TakeIn(t.Context(), info, path); !strings.Contains(says(err), "extended resource") {
		t.Errorf("a bad name: %v", err)
	}
	info.Name = string(led)
	withdraw, err := r.TakeIn(t.Context(), info, path)
	if err != nil {
		t.Fatal(err)
	}
	r.awaitAmounts(1, 1)
	r.Manager.mu.Lock()
	required := r.plugins[led].session.options.GetPreStartRequired()
	r.Manager.mu.Unlock()
	if !required {
		t.Error("the plugin's options are not known")
	}
	close(plugin.lists) // ListAndWatch ends, and so does each later one
	r.awaitAmounts(1, 0)
	plugin.lists = make(chan *api.ListAndWatchResponse, 1)
	plugin.lists <- listOf("a b")
	r.awaitAmounts(2, 2)
	withdraw()
	r.awaitAmounts(2, 0)
}
