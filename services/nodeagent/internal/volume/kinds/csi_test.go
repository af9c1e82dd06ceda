package kinds_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/csiplugin"
	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/mount"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

// driver is a CSI driver in memory, which needs no attachment and supports inline volumes, and its objects in the
// API.
type driver struct {
	mounter volume.Mounter
	data    string
	calls   []string
	last    *csi.NodePublishVolumeRequest
}

func (d *driver) Can() csiplugin.Capabilities { return csiplugin.Capabilities{Stage: true} }

func (d *driver) Stage(_ context.Context, r *csi.NodeStageVolumeRequest) error {
	d.calls = append(d.calls, "stage")
	return d.mount(r.GetStagingTargetPath())
}

func (d *driver) Publish(_ context.Context, r *csi.NodePublishVolumeRequest) error {
	d.calls, d.last = append(d.calls, "publish"), r
	if fake, is := d.mounter.(*mountfake.Mounter); is && r.GetVolumeCapability().GetBlock() != nil {
		if err := os.WriteFile(r.GetTargetPath(), nil, 0o600); err != nil {
			return err
		}
		return fake.Device(r.GetTargetPath())
	}
	return d.mount(r.GetTargetPath())
}

func (d *driver) mount(target string) error {
	if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	data, err := os.Open(d.data)
	if err != nil {
		return err
	}
	defer data.Close()
	return d.mounter.Bind(data, target)
}

func (d *driver) Unpublish(_ context.Context, _, target string) error {
	d.calls = append(d.calls, "unpublish")
	return d.mounter.Unmount(target)
}

func (d *driver) Unstage(_ context.Context, _, staging string) error {
	d.calls = append(d.calls, "unstage")
	return d.mounter.Unmount(staging)
}

func (d *driver) Expand(context.Context, *csi.NodeExpandVolumeRequest) error {
	panic("no volume is to grow")
}

func (d *driver) CSIDriver(_ context.Context, name string) (*storagev1.CSIDriver, error) {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{
		AttachRequired:       ptr.To(false),
		VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{"Persistent", "Ephemeral"}}}, nil
}

func (d *driver) VolumeAttachment(context.Context, string) (*storagev1.VolumeAttachment, error) {
	panic("the driver needs no attachment")
}

func (d *driver) DriverSecret(context.Context, corev1.SecretReference) (*corev1.Secret, error) {
	return &corev1.Secret{Data: map[string][]byte{"key": []byte("hush")}}, nil
}

func (d *driver) ClaimNow(context.Context, string, string) (*corev1.PersistentVolumeClaim, error) {
	panic("no volume is to grow")
}

func (d *driver) VolumeNow(context.Context, string) (*corev1.PersistentVolume, error) {
	panic("no volume is to grow")
}

func (d *driver) PatchClaimStatus(context.Context, string, string, []byte) (*corev1.PersistentVolumeClaim, error) {
	panic("no volume is to grow")
}

// driverObjects are the objects that the driver's volumes are made of.
type driverObjects struct {
	*driver
	*objects
}

// ofDriver binds the claim to a volume of the driver.
func (r *rig) ofDriver(readOnly bool) {
	r.bound(func(_ *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "vol-1",
			ReadOnly: readOnly, NodePublishSecretRef: &corev1.SecretReference{Namespace: "d", Name: "s"}}
	})
}

// SAF-185: a claim shows the volume of its driver, at the kubelet's path; a Pod that has it keeps it even if claim
// and volume are deleted; parts of it are unmounted before the driver is asked to unmount it.
func TestAClaimOfADriver(t *testing.T) {
	r := newRig(t, &mountfake.Mounter{})
	r.ofDriver(false)
	r.add("data", claimed(false))
	r.pod.Spec.Containers[0].VolumeMounts[0].SubPath = "part"
	want := filepath.Join(r.root.Dir, "pods/u-1/volumes/kubernetes.io~csi", handle, "mount")
	got := r.setUp(t)
	if result := got["data"]; result.Path != want || result.ReadOnly {
		t.Errorf("got %+v, want %s", result, want)
	}
	if r.driver.last.GetSecrets()["key"] != "hush" {
		t.Errorf("the driver was told the secrets %v", r.driver.last.GetSecrets())
	}
	r.objects.claims, r.objects.volumes = nil, nil
	got = r.setUp(t)
	if !slices.Equal(r.driver.calls, []string{"stage", "publish"}) {
		t.Errorf("the driver was asked %v", r.driver.calls)
	}
	request := volume.MountRequest{Pod: r.pod, Container: &r.pod.Spec.Containers[0], Volumes: got}
	if _, err := r.Mounts(request); err != nil {
		t.Fatal(err)
	}
	part := r.root.SubPath("u-1", "app", 0)
	r.mounter.(*mountfake.Mounter).Fail(part, os.ErrPermission)
	if err := r.TearDown(t.Context(), "u-1"); err == nil || len(r.driver.calls) != 2 {
		t.Errorf("a part is left: %v, the driver was asked %v", err, r.driver.calls)
	}
	r.mounter.(*mountfake.Mounter).Fail(part, nil)
	if err := r.TearDown(t.Context(), "u-1"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.driver.calls, []string{"stage", "publish", "unpublish"}) {
		t.Errorf("the driver was asked %v", r.driver.calls)
	}
}

// A volume is read-only if the volume, the claim's use of it or the Pod says so.
func TestReadOnlyVolumesOfADriver(t *testing.T) {
	for name, row := range map[string]struct{ volume, use, want bool }{
		"neither": {}, "volume": {volume: true, want: true}, "use": {use: true, want: true},
	} {
		r := newRig(t, &mountfake.Mounter{})
		r.ofDriver(row.volume)
		r.add("data", claimed(row.use))
		if got := r.setUp(t)["data"]; got.ReadOnly != row.want || r.driver.last.GetReadonly() != row.want {
			t.Errorf("%s: %+v, the driver was told %v", name, got, r.driver.last.GetReadonly())
		}
	}
}

// A claim of a block volume gives containers a device, to read alone if the volume, the use of the claim or the Pod
// says so; nothing is left of it after the Pod.
func TestABlockVolumeOfADriver(t *testing.T) {
	for name, row := range map[string]struct {
		volume, use bool
		want        string
	}{
		"to write": {want: "mrw"}, "volume": {volume: true, want: "r"}, "use": {use: true, want: "r"},
	} {
		r := newRig(t, &mountfake.Mounter{})
		r.ofDriver(row.volume)
		r.objects.volumes[handle].Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
		r.asDevice("data", row.use)
		path := filepath.Join(r.root.Dir, "plugins/kubernetes.io/csi/volumeDevices/publish", handle, "u-1")
		volumes := r.setUp(t)
		container := &r.pod.Spec.Containers[0]
		devices, err := volume.Devices(container, volumes)
		if err != nil || len(devices) != 1 || devices[0].GetHostPath() != path ||
			devices[0].GetContainerPath() != "/dev/data" || devices[0].GetPermissions() != row.want {
			t.Errorf("%s: %v, %v, want %s at %s", name, devices, err, row.want, path)
		}
		if got := r.driver.last; got.GetReadonly() != (row.want == "r") || got.GetVolumeCapability().GetBlock() == nil {
			t.Errorf("%s: the driver was told %v", name, got)
		}
		r.objects.claims, r.objects.volumes = nil, nil
		if again := r.setUp(t); again["data"] != volumes["data"] {
			t.Errorf("%s: later %v", name, again)
		}
		container.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		if _, err := r.Mounts(volume.MountRequest{Pod: r.pod, Container: container, Volumes: volumes}); err == nil ||
			!strings.Contains(err.Error(), `volume "data" is a block device, but is specified in volumeMounts`) {
			t.Errorf("%s: a device was mounted: %v", name, err)
		}
		if err := r.TearDown(t.Context(), "u-1"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(filepath.Dir(path)); !os.IsNotExist(err) {
			t.Errorf("%s: %s is left: %v", name, filepath.Dir(path), err)
		}
	}
}

// asDevice has the Pod's container use the claim as a device.
func (r *rig) asDevice(name string, readOnly bool) {
	r.pod.Spec.Volumes = append(r.pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: claimed(readOnly)})
	r.pod.Spec.Containers[0].VolumeDevices = append(r.pod.Spec.Containers[0].VolumeDevices,
		corev1.VolumeDevice{Name: name, DevicePath: "/dev/" + name})
}

// A container cannot have as a device what is a folder, or is not there.
func TestNoDevice(t *testing.T) {
	container := &corev1.Container{Name: "app", VolumeDevices: []corev1.VolumeDevice{{Name: "d", DevicePath: "/dev/d"}}}
	for want, volumes := range map[string]volume.Volumes{
		`cannot find volume "d" to pass into container "app"`: {},
		`volume "d" is no block device, but is specified in volumeDevices of container "app"`: {
			"d": volume.Result{Path: "/x"}},
	} {
		if _, err := volume.Devices(container, volumes); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// SAF-185: a second Pod that uses a claim for a single Pod gets an error with the name of the first.
func TestADriversVolumeForOnePod(t *testing.T) {
	r := newRig(t, &mountfake.Mounter{})
	r.ofDriver(false)
	r.objects.claims["ns/data"].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	r.add("data", claimed(false))
	r.setUp(t)
	r.next(t, "u-2")
	if _, err := r.trySetUp(t); err == nil ||
		!strings.Contains(err.Error(), "has access mode ReadWriteOncePod and is in use by pod u-1") {
		t.Errorf("got %v", err)
	}
	if err := tearDown(t.Context(), r.Host, r.root, "u-1"); err != nil {
		t.Fatal(err)
	}
	r.setUp(t)
}

// An inline volume is published and not staged, and is removed with its Pod.
func TestInlineVolumes(t *testing.T) {
	r := newRig(t, &mountfake.Mounter{})
	r.add("scratch", corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "disk.example.com"}})
	want := filepath.Join(r.root.Dir, "pods/u-1/volumes/kubernetes.io~csi/scratch/mount")
	if got := r.setUp(t)["scratch"]; got.Path != want {
		t.Errorf("got %+v, want %s", got, want)
	}
	if err := r.TearDown(t.Context(), "u-1"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.driver.calls, []string{"publish", "unpublish"}) {
		t.Errorf("the driver was asked %v", r.driver.calls)
	}
}

// SAF-190: with real mounts: what a Pod writes is in the volume, belongs to its group and outlives the Pod, and
// nothing stays mounted after the last Pod.
func TestADriversMounts(t *testing.T) {
	r := newRig(t, mount.Kernel{})
	r.ofDriver(false)
	r.objects.volumes[handle].Spec.CSI.FSType = "ext4"
	r.objects.volumes[handle].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	r.pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](2345)}
	r.add("data", claimed(false))
	path := r.setUp(t)["data"].Path
	if err := os.WriteFile(filepath.Join(path, "file"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Sys().(*syscall.Stat_t).Gid != 2345 {
		t.Errorf("the volume is not its group's: %v", err)
	}
	if err := r.TearDown(t.Context(), "u-1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.drivers.Run(ctx)
	}()
	staged := filepath.Join(r.root.Dir, "plugins", "kubernetes.io", "csi", "disk.example.com")
	for late := time.After(30 * time.Second); ; {
		if _, err := os.Stat(staged); err != nil {
			break
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-late:
			t.Fatal("the volume stays staged")
		}
	}
	cancel()
	<-done
	if left, err := r.mounter.Under(r.root.Dir); err != nil || len(left) != 0 {
		t.Errorf("left mounted: %v, %v", left, err)
	}
	wantFile(t, r.driver.data, "file", "hello")
}
