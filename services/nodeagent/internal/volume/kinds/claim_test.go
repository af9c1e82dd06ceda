package kinds_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/localvolume"
	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/mount"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

const handle = "pvc-11111111-2222-3333-4444-555555555555"

// bound binds the claim data of the namespace ns to a volume of this node; change may modify both.
func (r *rig) bound(change ...func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume)) {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "c-1"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: handle,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: handle, Labels: map[string]string{"local.keelson.dev/node": "n"},
			Finalizers: []string{"local.keelson.dev/folder"}},
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: "ns", Name: "data", UID: "c-1"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "local.keelson.dev", VolumeHandle: handle}},
			NodeAffinity: onHost("n"),
		},
	}
	for _, c1 := range change {
		c1(c, pv)
	}
	r.objects.claims = map[string]*corev1.PersistentVolumeClaim{"ns/data": c}
	r.objects.volumes = map[string]*corev1.PersistentVolume{c.Spec.VolumeName: pv}
}

func onHost(name string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname,
			Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}}}}
}

func claimed(readOnly bool) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data",
		ReadOnly: readOnly}}
}

// next replaces the rig's Pod by another one of the same spec.
func (r *rig) next(t *testing.T, uid types.UID) {
	t.Helper()
	r.pod = r.pod.DeepCopy()
	r.pod.UID = uid
	if err := r.root.Make(r.pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tearDown(t.Context(), r.Host, r.root, uid); err != nil {
			t.Error(err)
		}
	})
}

// SET-002, SET-054: a Pod finds what the one before it left, no data is removed at its end, and a running Pod keeps
// its volume even if the claim is deleted.
func TestClaimKeepsItsData(t *testing.T) {
	r := newRig(t, mount.Kernel{})
	r.bound()
	r.add("data", claimed(false))
	r.pod.Spec.Containers[0].VolumeMounts[0].SubPath = "part"
	volumes := r.setUp(t)
	path := volumes["data"].Path
	if want := filepath.Join(r.root.Dir, "local-volumes", handle); path != want || volumes["data"].ReadOnly {
		t.Errorf("got %+v, want %s", volumes["data"], want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("its folder: %v, %v", info, err)
	}
	if _, err := r.Mounts(volume.MountRequest{Pod: r.pod, Container: &r.pod.Spec.Containers[0],
		Volumes: volumes}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "part", "work"), []byte("done"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.objects.claims, r.objects.volumes = nil, nil // gone, or the API server does not answer
	if got := r.setUp(t)["data"].Path; got != path {
		t.Errorf("later %s", got)
	}
	if err := r.TearDown(t.Context(), r.pod.UID); err != nil {
		t.Fatal(err)
	}
	if mounts, err := r.mounter.Under(r.root.Dir); err != nil || len(mounts) != 0 {
		t.Errorf("mounts are left: %v, %v", mounts, err)
	}
	r.next(t, "u-2")
	r.bound()
	wantFile(t, r.setUp(t)["data"].Path, "part/work", "done")
}

// SAF-185: a Pod on the wrong node does not get the volume; one sentence says why a Pod cannot use it.
func TestClaimRefusals(t *testing.T) {
	type (
		claim = *corev1.PersistentVolumeClaim
		pv    = *corev1.PersistentVolume
	)
	const prefix = `MountVolume.SetUp failed for volume "data" : `
	for _, row := range []struct {
		name   string
		change func(claim, pv)
		want   string
	}{
		{"bound", func(claim, pv) {}, ""},
		{"pending", func(c claim, _ pv) { c.Status.Phase = corev1.ClaimPending },
			`persistentvolumeclaim "data" is not bound: its phase is Pending, it must be Bound`},
		{"lost", func(c claim, _ pv) { c.Status.Phase = corev1.ClaimLost }, "its phase is Lost, it must be Bound"},
		{"being deleted", func(c claim, _ pv) { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
			`persistentvolumeclaim "data" is being deleted: no new pod can use it`},
		{"a volume of another claim", func(_ claim, v pv) { v.Spec.ClaimRef.UID = "c-2" },
			`persistentvolume "` + handle + `" is not bound to persistentvolumeclaim "data"`},
		{"a volume of none", func(_ claim, v pv) { v.Spec.ClaimRef = nil }, "is not bound to persistentvolumeclaim"},
		{"block", func(_ claim, v pv) { v.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) },
			"volumeMode Block of PersistentVolume " + handle + " is not supported by this node: it must be Filesystem" +
				", or Block with a CSI driver"},
		{"block of a path", func(_ claim, v pv) {
			v.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
				Local: &corev1.LocalVolumeSource{Path: "/dev/x"}}
		}, "it must be Filesystem, or Block with a CSI driver"},
		{"a mode of later times", func(_ claim, v pv) {
			v.Spec.CSI.Driver, v.Spec.VolumeMode = "ebs.example.com", ptr.To(corev1.PersistentVolumeMode("Tape"))
		}, "volumeMode Tape of PersistentVolume " + handle + " is not supported by this node"},
		{"another node", func(_ claim, v pv) { v.Spec.NodeAffinity = onHost("m") },
			"spec.nodeAffinity of PersistentVolume " + handle + " does not allow node n"},
		{"a folder of another node", func(_ claim, v pv) { v.Labels["local.keelson.dev/node"] = "m" },
			`says that its folder is on node "m": it cannot be used on node n`},
		{"another driver's block", func(_ claim, v pv) {
			v.Spec.CSI.Driver, v.Spec.VolumeMode = "ebs.example.com", ptr.To(corev1.PersistentVolumeBlock)
		}, "volume data has volumeMode Block, but is specified in volumeMounts"},
		{"another source", func(_ claim, v pv) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}
		}, "volume source nfs of PersistentVolume " + handle +
			" is not supported by this node: use local, hostPath or csi"},
		{"a handle that leads elsewhere", func(_ claim, v pv) { v.Spec.CSI.VolumeHandle = "../../etc" },
			`spec.csi.volumeHandle "../../etc" of PersistentVolume ` + handle + ` must be pvc- and a UUID`},
		{"a handle with more behind it", func(_ claim, v pv) { v.Spec.CSI.VolumeHandle = handle + "/x" },
			"must be pvc- and a UUID"},
		{"a handle of another", func(_ claim,
			v pv) {
			v.Spec.CSI.VolumeHandle = "pvc-99999999-2222-3333-4444-555555555555"
		},
			"must be its own name"},
		{"a local path that is not there", func(_ claim, v pv) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{
				Path: "/none/x"}}
		}, "spec.local.path /none/x of PersistentVolume " + handle + " must be a folder of this node"},
		{"a host path that is not there", func(_ claim, v pv) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: "/none/x", Type: ptr.To(corev1.HostPathDirectory)}}
		}, "hostPath type check failed: /none/x is not a directory"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, &mountfake.Mounter{})
			r.bound(row.change)
			r.add("data", claimed(false))
			_, err := r.trySetUp(t)
			if row.want == "" && err != nil || row.want != "" && (err == nil ||
				!strings.HasPrefix(err.Error(), prefix) || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A folder is no device, and nothing is set up without a claim.
func TestClaimsThatDoNotFit(t *testing.T) {
	r := newRig(t, &mountfake.Mounter{})
	r.bound()
	r.asDevice("data", false)
	if _, err := r.trySetUp(t); err == nil || !strings.Contains(err.Error(),
		"volume data has volumeMode Filesystem, but is specified in volumeDevices") {
		t.Errorf("a folder as a device: %v", err)
	}
	r = newRig(t, &mountfake.Mounter{})
	r.add("data", claimed(false))
	if _, err := r.trySetUp(t); err == nil || !strings.Contains(err.Error(), `persistentvolumeclaim "data" not found`) {
		t.Errorf("without the claim: %v", err)
	}
}

// A user has made a volume of paths of the host, read-only if claim or volume say so.
func TestClaimOfAPath(t *testing.T) {
	dir := t.TempDir()
	for name, source := range map[string]corev1.PersistentVolumeSource{
		"local":    {Local: &corev1.LocalVolumeSource{Path: dir}},
		"hostPath": {HostPath: &corev1.HostPathVolumeSource{Path: dir}},
	} {
		r := newRig(t, &mountfake.Mounter{})
		r.bound(func(_ *corev1.PersistentVolumeClaim,
			v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = source
		})
		r.add("data", claimed(false))
		r.add("again", claimed(true))
		got := r.setUp(t)
		if got["data"] != (volume.Result{Path: dir}) || got["again"] != (volume.Result{Path: dir, ReadOnly: true}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	r := newRig(t, &mountfake.Mounter{})
	r.bound(func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.CSI.ReadOnly = true })
	r.add("data", claimed(false))
	if got := r.setUp(t)["data"]; !got.ReadOnly {
		t.Errorf("%+v is not read-only", got)
	}
}

// Only its Pod may use a claim that is created for one Pod.
func TestClaimOfOnePod(t *testing.T) {
	r := newRig(t, &mountfake.Mounter{})
	r.add("data", corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}})
	r.bound()
	r.objects.claims["ns/web-data"] = r.objects.claims["ns/data"]
	if _, err := r.trySetUp(t); err == nil || !strings.Contains(err.Error(), "was not created for this pod") {
		t.Errorf("got %v", err)
	}
	r.objects.claims["ns/web-data"].OwnerReferences = []metav1.OwnerReference{{UID: "u-1", Controller: ptr.To(true)}}
	r.setUp(t)
}

// A second Pod of the node does not get a claim of ReadWriteOncePod while the first has it.
func TestClaimOfASinglePod(t *testing.T) {
	r := newRig(t, &mountfake.Mounter{})
	r.bound(func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
		c.Spec.AccessModes[0] = corev1.ReadWriteOncePod
	})
	r.add("data", claimed(false))
	r.setUp(t)
	r.setUp(t) // the same Pod again
	first := r.pod
	r.next(t, "u-2")
	if _, err := r.trySetUp(t); err == nil || !strings.Contains(err.Error(),
		`persistentvolumeclaim "data" has access mode ReadWriteOncePod and is in use by pod u-1`) {
		t.Errorf("got %v", err)
	}
	if err := r.TearDown(t.Context(), first.UID); err != nil {
		t.Fatal(err)
	}
	r.setUp(t)
}

// A folder that was created and is missing is not created again: a Pod that needs its data must not start without
// it.
func TestClaimDoesNotStartAfresh(t *testing.T) {
	r := newRig(t, &mountfake.Mounter{})
	r.bound()
	r.add("data", claimed(false))
	path := r.setUp(t)["data"].Path
	want := "the folder " + path + " was made once and is gone: put its data back, or delete the claim"
	for _, wipe := range []string{path, filepath.Dir(path)} {
		if err := os.RemoveAll(wipe); err != nil {
			t.Fatal(err)
		}
		if _, err := r.trySetUp(t); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the same pod: %v", err)
		}
		r.next(t, types.UID("u-"+filepath.Base(wipe)))
		if _, err := r.trySetUp(t); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the next pod: %v", err)
		}
	}
	if err := os.Symlink("/etc", path); err != nil {
		t.Fatal(err)
	}
	if _, err := r.trySetUp(t); err == nil || !strings.Contains(err.Error(), "is no folder") {
		t.Errorf("a link in its place: %v", err)
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o777)); err != nil { // the operator restores it
		t.Fatal(err)
	}
	r.setUp(t)
}

// fsGroup applies to all that a volume holds, but does not follow links or enter mounts, and does not apply to a
// path of the host.
func TestClaimOfAGroup(t *testing.T) {
	r := newRig(t, mount.Kernel{})
	r.bound()
	r.add("data", claimed(false))
	path, outside := r.setUp(t)["data"].Path, filepath.Join(t.TempDir(), "outside")
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(path, "mounted")
	must(os.WriteFile(outside, nil, 0o600), os.Mkdir(filepath.Join(path, "sub"), 0o700), os.Mkdir(other, 0o700),
		os.WriteFile(filepath.Join(path, "sub", "file"), nil, 0o600),
		os.Symlink(outside, filepath.Join(path, "sub", "link")), unix.Mkfifo(filepath.Join(path, "fifo"), 0o600),
		r.mounter.Tmpfs(other, 0, 0o700, 0))
	defer func() { must(r.mounter.Unmount(other)) }()
	look := func(path string) (fs.FileMode, uint32) {
		t.Helper()
		info, err := os.Lstat(path)
		must(err)
		return info.Mode() &^ fs.ModeType, info.Sys().(*syscall.Stat_t).Gid
	}
	want := func(name string, mode fs.FileMode, group uint32) {
		t.Helper()
		if gotMode, gotGroup := look(name); gotMode != mode || gotGroup != group {
			t.Errorf("%s: mode %v of group %d, want %v of %d", name, gotMode, gotGroup, mode, group)
		}
	}
	must(r.TearDown(t.Context(), r.pod.UID))
	r.next(t, "u-2")
	r.pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](2345)}
	must(failpoint.Arm("nodeagent/volume.setup.after", "1*error(killed)"))
	if _, err := r.trySetUp(t); !errors.Is(err, failpoint.ErrInjected) {
		t.Errorf("not killed: %v", err)
	}
	r.setUp(t)
	want(path, 0o777|fs.ModeSetgid, 2345)
	want(filepath.Join(path, "sub"), 0o770|fs.ModeSetgid, 2345)
	want(filepath.Join(path, "sub", "file"), 0o660, 2345)
	want(filepath.Join(path, "fifo"), 0o660, 2345)
	want(outside, 0o600, 0)
	want(other, 0o700, 0)

	must(os.Chmod(filepath.Join(path, "sub", "file"), 0o600), r.TearDown(t.Context(), r.pod.UID))
	r.next(t, "u-3")
	r.pod.Spec.SecurityContext.FSGroupChangePolicy = ptr.To(corev1.FSGroupChangeOnRootMismatch)
	r.setUp(t)
	want(filepath.Join(path, "sub", "file"), 0o600, 2345)
	must(r.TearDown(t.Context(), r.pod.UID))
	r.next(t, "u-4")
	r.pod.Spec.SecurityContext.FSGroup = ptr.To[int64](3456)
	r.setUp(t)
	want(filepath.Join(path, "sub", "file"), 0o660, 3456)
}

// An agent that is killed at any step of setting up or removing carries on from there.
func TestClaimFailpoints(t *testing.T) {
	for _, point := range []string{"nodeagent/localvolume.make.before", "nodeagent/localvolume.make.after"} {
		r := newRig(t, &mountfake.Mounter{})
		r.bound()
		r.add("data", claimed(false))
		if err := failpoint.Arm(point, "1*error(killed)"); err != nil {
			t.Fatal(err)
		}
		_, err := r.trySetUp(t)
		failpoint.Disarm(point)
		if !errors.Is(err, failpoint.ErrInjected) {
			t.Errorf("%s was not passed: %v", point, err)
		}
		r.setUp(t)
		if err := r.store.Remove(handle, handle); !errors.Is(err, localvolume.ErrInUse) {
			t.Errorf("%s: removed while in use: %v", point, err)
		}
	}
}
