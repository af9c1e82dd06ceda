package kinds_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/downward"
	"keelson.dev/services/nodeagent/internal/podenv"
	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/mount"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

// POD-189, SAF-142, POD-165: nothing of a Pod is left, even if the nodeagent does not know the Pod any more; and
// what the Pod had from the host stays.
func TestTearDown(t *testing.T) {
	r := newRig(t, mount.Kernel{})
	host := t.TempDir()
	if err := os.MkdirAll(filepath.Join(host, "part"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.add("memory", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})
	r.add("api", kubeAPIAccess())
	r.add("host", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host}})
	r.pod.Spec.Containers[0].VolumeMounts[2].SubPath = "part"
	request := volume.MountRequest{Pod: r.pod, Container: &r.pod.Spec.Containers[0], Volumes: r.setUp(t)}
	if _, err := r.Mounts(request); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(host, "part", "precious"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	other := volume.NewHost(r.root, r.mounter, nil)
	if found, err := r.root.List(); err != nil || len(found) != 1 || found[0] != "u-1" {
		t.Fatalf("pods on disk: %v, %v", found, err)
	}
	for range 2 {
		if err := tearDown(t.Context(), other, r.root, "u-1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(r.root.Pod("u-1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	if mounts, err := r.mounter.Under(r.root.Dir); err != nil || len(mounts) != 0 {
		t.Errorf("mounts are left: %v, %v", mounts, err)
	}
	if _, err := os.Stat(filepath.Join(host, "part", "precious")); err != nil {
		t.Errorf("the host's file is gone: %v", err)
	}
}

// A mount that cannot be removed stops the removal of files, and the next attempt finishes it.
func TestTearDownStopsAtAMount(t *testing.T) {
	r := newRig(t, mount.Kernel{})
	r.add("memory", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})
	path := r.setUp(t)["memory"].Path
	busy, err := os.Create(filepath.Join(path, "open"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.TearDown(t.Context(), r.pod.UID); err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(path, "open")); err != nil {
		t.Errorf("files below a mount were removed: %v", err)
	}
	busy.Close()
	if err := r.TearDown(t.Context(), r.pod.UID); err != nil {
		t.Error(err)
	}
}

// attached is a kind of volume that leaves something outside its folder.
type attached struct {
	volume.Kind
	down []string
	err  error
}

func (*attached) Name() string { return "attached" }

func (*attached) Handles(v *corev1.Volume) bool { return v.NFS != nil }

func (*attached) SetUp(_ context.Context, request volume.Request) (volume.Result, error) {
	return volume.Result{Path: request.Dir}, os.Mkdir(request.Dir, 0o755)
}

func (a *attached) TearDown(_ context.Context, pod types.UID, name, dir string) error {
	_, err := os.Stat(dir)
	a.down = append(a.down, string(pod)+" "+name)
	return errors.Join(err, a.err)
}

// TearDown of a kind is called before the folder is removed, with what is on disk, and again until it succeeds.
func TestAKindTearsDown(t *testing.T) {
	r := newRig(t, &mountfake.Mounter{})
	kind := &attached{err: errors.New("no answer")}
	host := volume.NewHost(r.root, r.mounter, []volume.Kind{kind})
	r.add("remote", corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}})
	if _, err := host.SetUp(t.Context(), downward.View{Pod: r.pod}, nil); err != nil {
		t.Fatal(err)
	}
	later := volume.NewHost(r.root, r.mounter, []volume.Kind{kind})
	if err := tearDown(t.Context(), later, r.root, "u-1"); err == nil || !strings.Contains(err.Error(),
		`volume "remote" : no answer`) {
		t.Errorf("got %v", err)
	}
	kind.err = nil
	for range 2 {
		if err := tearDown(t.Context(), later, r.root, "u-1"); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(kind.down, ", "); got != "u-1 remote, u-1 remote" {
		t.Errorf("taken down %q, want the volume twice, and not when it had gone", got)
	}
}

// A nodeagent that is killed at any step of setting up or taking down carries on from there.
func TestFailpoints(t *testing.T) {
	r := newRig(t, mount.Kernel{})
	r.add("api", kubeAPIAccess())
	for _, point := range []string{"nodeagent/volume.setup.before", "nodeagent/volume.setup.after",
		"nodeagent/volume.teardown.before", "nodeagent/volume.teardown.after"} {
		if err := failpoint.Arm(point, "1*error(killed)"); err != nil {
			t.Fatal(err)
		}
		_, setUp := r.trySetUp(t)
		takeDown := r.TearDown(t.Context(), r.pod.UID)
		failpoint.Disarm(point)
		if err := errors.Join(setUp, takeDown); !errors.Is(err, failpoint.ErrInjected) {
			t.Errorf("%s was not passed: %v", point, err)
		}
		wantFile(t, r.setUp(t)["api"].Path, "token", "token-1")
		if err := r.TearDown(t.Context(), r.pod.UID); err != nil {
			t.Errorf("%s: %v", point, err)
		}
	}
}

// POD-057, POD-189: what containers mount.
func TestMounts(t *testing.T) {
	r := newRig(t, &mountfake.Mounter{})
	r.add("disk", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	r.add("map", configMapSource("cm", nil))
	volumes := r.setUp(t)
	mounts := func(able bool, list ...corev1.VolumeMount) (string, error) {
		container := &corev1.Container{Name: "app", VolumeMounts: list}
		env := podenv.Result{Env: []podenv.Variable{{Name: "POD", Value: "web-0"}}}
		got, err := r.Mounts(volume.MountRequest{Pod: r.pod, Container: container, Volumes: volumes, Env: env,
			RecursiveReadOnly: able})
		var lines []string
		for _, m := range got {
			line := m.ContainerPath + "=" + strings.TrimPrefix(m.HostPath, r.root.Pod(r.pod.UID))
			if m.Readonly {
				line += " ro"
			}
			if m.RecursiveReadOnly {
				line += " rro"
			}
			if m.Propagation != 0 {
				line += " " + m.Propagation.String()
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n"), err
	}
	enabled, ifPossible := ptr.To(corev1.RecursiveReadOnlyEnabled), ptr.To(corev1.RecursiveReadOnlyIfPossible)
	for _, row := range []struct {
		name  string
		mount corev1.VolumeMount
		able  bool
		want  string
	}{
		{"plain", corev1.VolumeMount{Name: "disk", MountPath: "/d"}, false, "/d=/volumes/emptyDir/disk"},
		{"read only", corev1.VolumeMount{Name: "disk", MountPath: "/d", ReadOnly: true}, true,
			"/d=/volumes/emptyDir/disk ro"},
		{"of an object", corev1.VolumeMount{Name: "map", MountPath: "/m"}, false, "/m=/volumes/configMap/map ro"},
		{"one file", corev1.VolumeMount{Name: "map", MountPath: "/m/a", SubPath: "a"}, false,
			"/m/a=/subpaths/app/0 ro"},
		{"expression", corev1.VolumeMount{Name: "disk", MountPath: "/d", SubPathExpr: "logs/$(POD)"}, false,
			"/d=/subpaths/app/0"},
		{"recursive", corev1.VolumeMount{Name: "disk", MountPath: "/d", ReadOnly: true, RecursiveReadOnly: enabled},
			true, "/d=/volumes/emptyDir/disk ro rro"},
		{"recursive if possible", corev1.VolumeMount{Name: "disk", MountPath: "/d", ReadOnly: true,
			RecursiveReadOnly: ifPossible}, false, "/d=/volumes/emptyDir/disk ro"},
		{"from the host", corev1.VolumeMount{Name: "disk", MountPath: "/d",
			MountPropagation: ptr.To(corev1.MountPropagationHostToContainer)}, false,
			"/d=/volumes/emptyDir/disk PROPAGATION_HOST_TO_CONTAINER"},
		{"both ways", corev1.VolumeMount{Name: "disk", MountPath: "/d",
			MountPropagation: ptr.To(corev1.MountPropagationBidirectional)}, false,
			"/d=/volumes/emptyDir/disk PROPAGATION_BIDIRECTIONAL"},
	} {
		if got, err := mounts(row.able, row.mount); err != nil || got != row.want {
			t.Errorf("%s: %q, %v; want %q", row.name, got, err, row.want)
		}
	}
	if _, err := os.Stat(filepath.Join(volumes["disk"].Path, "logs/web-0")); err != nil {
		t.Errorf("the expression's folder: %v", err)
	}
	for want, mount := range map[string]corev1.VolumeMount{
		`cannot find volume "none" to mount into container "app"`:             {Name: "none"},
		`subPathExpr of volume "disk": missing value for "NOPE"`:              {Name: "disk", SubPathExpr: "$(NOPE)"},
		`failed to prepare subPath for volumeMount "disk" of container "app"`: {Name: "disk", SubPath: "../x"},
		`cannot make mounts read-only recursively (recursiveReadOnly: Enabled)`: {Name: "disk", ReadOnly: true,
			RecursiveReadOnly: enabled},
	} {
		if _, err := mounts(false, mount); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
