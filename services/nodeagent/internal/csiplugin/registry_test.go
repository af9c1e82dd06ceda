package csiplugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"keelson.dev/services/nodeagent/internal/csiplugin/csifake"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

// lamps accept plugins whose name begins with lamp.
type lamps chan string

func (l lamps) TakeIn(_ context.Context, info *registration.PluginInfo, endpoint string) (func(), error) {
	if !strings.HasPrefix(info.GetName(), "lamp") {
		return nil, fmt.Errorf("%s is no lamp", info.GetName())
	}
	l <- "in: " + info.GetName() + " " + filepath.Base(endpoint)
	return func() { l <- "out: " + info.GetName() }, nil
}

// rig is a running Registry.
type rig struct {
	*Registry
	lamps   lamps
	t       *testing.T
	changed chan struct{}
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, changed: make(chan struct{}, 100), lamps: make(lamps, 100)}
	r.Registry = New(Config{Root: t.TempDir(), Log: zap.NewNop(), CallTimeout: 200 * time.Millisecond,
		Changed: func() { r.changed <- struct{}{} }, Takers: map[string]Taker{"Lamp": r.lamps}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

func (r *rig) driver(name string) *csifake.Driver {
	return csifake.New(name, r.t.TempDir(), &mountfake.Mounter{})
}

// await waits until exactly these drivers are registered.
func (r *rig) await(names ...string) {
	r.t.Helper()
	late := time.After(30 * time.Second)
	for {
		var got []string
		for _, i := range r.Identities() {
			got = append(got, i.Name)
		}
		if strings.Join(got, " ") == strings.Join(names, " ") {
			return
		}
		select {
		case <-r.changed:
		case <-time.After(50 * time.Millisecond):
		case <-late:
			r.t.Fatalf("registered are %v, want %v", got, names)
		}
	}
}

// refused waits until a driver is notified why it is not registered.
func (r *rig) refused(d *csifake.Driver, want string) {
	r.t.Helper()
	late := time.After(30 * time.Second)
	for {
		for _, told := range d.Told() {
			if told.GetPluginRegistered() || !strings.Contains(told.GetError(), want) {
				r.t.Fatalf("it was told %v, want %q", told, want)
			}
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-late:
			r.t.Fatal("it was told nothing")
		}
	}
}

func (r *rig) socket(name string) string { return filepath.Join(r.Dir(), name) }

// SAF-187: a driver whose socket is in the folder serves the node until the socket disappears, and again when it
// comes back; what it reported of the node is kept.
func TestADriverComesAndGoes(t *testing.T) {
	r := newRig(t)
	d := r.driver("disk.example.com")
	d.Plugin.Endpoint = filepath.Join(r.Root, "plugins", "disk", "csi.sock")
	d.Serve(t, d.Plugin.Endpoint)
	if _, err := r.Driver("disk.example.com"); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("before it came: %v", err)
	}
	stop := d.Serve(t, r.socket("disk-reg.sock"))
	r.await("disk.example.com")
	driver, err := r.Driver("disk.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if id := driver.Identity; id.NodeID != "id-of-n" || id.MaxVolumes != 7 || id.Topology["example.com/rack"] != "r1" {
		t.Errorf("it says %+v", id)
	}
	if !driver.Can().Stage || driver.Can().MountGroup {
		t.Errorf("it can %+v", driver.Can())
	}
	for told := d.Told(); len(told) == 0; told = d.Told() {
		<-time.After(10 * time.Millisecond)
	}
	if told := d.Told(); !told[0].GetPluginRegistered() || told[0].GetError() != "" {
		t.Errorf("it was told %v", told)
	}
	stop()
	r.await()
	d.Info.NodeId = "other"
	d.Serve(t, r.socket("disk-reg.sock"))
	r.await("disk.example.com")
	if id := r.Identities()[0]; id.NodeID != "other" {
		t.Errorf("after it came again: %+v", id)
	}
}

// A plugin that this node cannot use gets the reason in one sentence, and the others are served.
func TestRefused(t *testing.T) {
	for name, row := range map[string]struct {
		change func(r *rig, d *csifake.Driver)
		want   string
	}{
		"a plugin of no known type": {func(_ *rig, d *csifake.Driver) { d.Plugin.Type = "DRAPlugin" },
			`plugins of type "DRAPlugin" are not supported by this node: the type must be CSIPlugin or Lamp`},
		"a plugin that its taker refuses": {func(_ *rig, d *csifake.Driver) { d.Plugin.Type = "Lamp" },
			"bad.example.com is no lamp"},
		"a name that is a path": {func(_ *rig, d *csifake.Driver) { d.Plugin.Name = "../../pods" }, "name"},
		"an old version": {func(_ *rig, d *csifake.Driver) { d.Plugin.SupportedVersions = []string{"0.3.0"} },
			"speaks none of the versions"},
		"an endpoint elsewhere": {func(_ *rig, d *csifake.Driver) { d.Plugin.Endpoint = "/run/some.sock" },
			"must be the path of a unix socket below"},
		"an endpoint that is a link": {func(r *rig, d *csifake.Driver) {
			d.Plugin.Endpoint = filepath.Join(r.Root, "link.sock")
			_ = os.Symlink(r.socket("x.sock"), d.Plugin.Endpoint)
		}, "without symbolic links"},
		"no ID of the node": {func(_ *rig, d *csifake.Driver) { d.Info.NodeId = "" }, "says no node_id"},
		"an ID that is too long": {func(_ *rig, d *csifake.Driver) { d.Info.NodeId = strings.Repeat("x", 257) },
			"257 bytes: at most 256"},
		"less than no volumes": {func(_ *rig, d *csifake.Driver) { d.Info.MaxVolumesPerNode = -1 },
			"must be 0 or more"},
		"a segment that is no label": {func(_ *rig, d *csifake.Driver) {
			d.Info.AccessibleTopology.Segments = map[string]string{"a b": "c"}
		}, "cannot be a label"},
		"a huge answer": {func(_ *rig, d *csifake.Driver) { d.Info.NodeId = strings.Repeat("x", 2<<20) },
			"ResourceExhausted"},
		"a driver that hangs": {func(r *rig, d *csifake.Driver) {
			d.Before = func(context.Context, string) error { <-r.t.Context().Done(); return nil }
		}, "did not answer within 200ms"},
		"a driver that talks": {func(_ *rig, d *csifake.Driver) {
			d.Before = func(context.Context, string) error {
				return status.Error(codes.Internal, strings.Repeat("no\n", 1000))
			}
		}, "Internal: no no no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			well, bad := r.driver("well.example.com"), r.driver("bad.example.com")
			row.change(r, bad)
			bad.Serve(t, r.socket("bad.sock"))
			well.Serve(t, r.socket("well.sock"))
			r.await("well.example.com")
			r.refused(bad, row.want)
			if text := bad.Told()[0].GetError(); len(text) > 1000 || strings.Contains(text, "\n") {
				t.Errorf("it was told %d bytes: %s", len(text), text)
			}
		})
	}
}

// Of two drivers with one name the first stays, and the second is registered when the first is gone.
func TestANameIsTaken(t *testing.T) {
	r := newRig(t)
	first, second := r.driver("disk.example.com"), r.driver("disk.example.com")
	second.Info.NodeId = "second"
	stop := first.Serve(t, r.socket("a.sock"))
	r.await("disk.example.com")
	second.Serve(t, r.socket("b.sock"))
	r.refused(second, "has registered by the socket a.sock already")
	if id := r.Identities()[0]; id.NodeID != "id-of-n" {
		t.Errorf("the first was replaced: %+v", id)
	}
	stop()
	r.await()
	r.await("disk.example.com")
}

// A plugin of another type is passed to its Taker, and withdrawn when its socket disappears.
func TestPluginsOfOtherTypes(t *testing.T) {
	r := newRig(t)
	d := r.driver("lamp.example.com")
	d.Plugin.Type = "Lamp"
	stop := d.Serve(t, r.socket("lamp.sock"))
	hears := func(want string) {
		t.Helper()
		select {
		case got := <-r.lamps:
			if got != want {
				t.Fatalf("heard %q, want %q", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("did not hear %q", want)
		}
	}
	hears("in: lamp.example.com lamp.sock")
	for len(d.Told()) == 0 {
		<-time.After(10 * time.Millisecond)
	}
	if told := d.Told(); !told[0].GetPluginRegistered() || len(r.Identities()) > 0 {
		t.Errorf("it was told %v; CSI drivers are %v", told, r.Identities())
	}
	stop()
	hears("out: lamp.example.com")
	d.Plugin.Endpoint = filepath.Join(r.Root, "elsewhere.sock")
	d.Serve(t, r.socket("lamp.sock"))
	hears("in: lamp.example.com elsewhere.sock")
}

// Anything other than a socket is left alone.
func TestTrapsInTheFolder(t *testing.T) {
	r := newRig(t)
	d := r.driver("disk.example.com")
	outside := filepath.Join(t.TempDir(), "o.sock")
	d.Serve(t, outside)
	for _, err := range []error{
		os.MkdirAll(r.Dir(), 0o750),
		syscall.Mkfifo(r.socket("fifo.sock"), 0o600), os.Symlink(outside, r.socket("link.sock")),
		os.Mkdir(r.socket("dir.sock"), 0o700), os.WriteFile(r.socket("file.sock"), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r.driver("well.example.com").Serve(t, r.socket("well.sock"))
	r.await("well.example.com")
	if told := d.Told(); len(told) != 0 {
		t.Errorf("a link was followed: %v", told)
	}
}

// A volume that the driver does not know counts as unpublished and unstaged.
func TestWhatIsGoneIsUndone(t *testing.T) {
	r := newRig(t)
	d := r.driver("disk.example.com")
	d.Before = func(_ context.Context, method string) error {
		if method == "info" {
			return nil
		}
		return status.Error(codes.NotFound, "no such volume")
	}
	d.Serve(t, r.socket("disk.sock"))
	r.await("disk.example.com")
	driver, err := r.Driver("disk.example.com")
	if err == nil {
		err = errors.Join(driver.Unpublish(t.Context(), "v", "/t"), driver.Unstage(t.Context(), "v", "/s"))
	}
	if err != nil {
		t.Error(err)
	}
	if err := driver.Stage(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: "v"}); err == nil ||
		err.Error() != "NodeStageVolume of CSI driver disk.example.com: NotFound: no such volume" {
		t.Errorf("staging what is not there: %v", err)
	}
}
