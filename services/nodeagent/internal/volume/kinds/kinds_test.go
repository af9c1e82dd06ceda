package kinds_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/downward"
	"keelson.dev/services/nodeagent/internal/podenv"
	"keelson.dev/services/nodeagent/internal/podfiles"
	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/kinds"
	"keelson.dev/services/nodeagent/internal/volume/mount"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

// objects are API objects in memory.
type objects struct {
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
	token      volume.Token
	tokenErr   error
	asked      []string
}

func (o *objects) ConfigMap(_ context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	if found := o.configMaps[namespace+"/"+name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("configmap"), name)
}

func (o *objects) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	if found := o.secrets[namespace+"/"+name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secret"), name)
}

func (o *objects) ServiceAccountToken(_ context.Context, _ *corev1.Pod, audience string, lifetime time.Duration) (volume.Token, error) {
	o.asked = append(o.asked, audience+" "+lifetime.String())
	return o.token, o.tokenErr
}

// rig is a Host on real disk and, if asked for, real mounts.
type rig struct {
	*volume.Host
	root    podfiles.Root
	objects *objects
	mounter volume.Mounter
	pod     *corev1.Pod
}

func newRig(t *testing.T, mounter volume.Mounter) *rig {
	r := &rig{root: podfiles.Root{Dir: t.TempDir(), LogDir: t.TempDir()}, mounter: mounter, objects: &objects{
		configMaps: map[string]*corev1.ConfigMap{"ns/cm": {Data: map[string]string{"a": "1", "b": "2"}, BinaryData: map[string][]byte{"bin": {0, 1}}}},
		secrets:    map[string]*corev1.Secret{"ns/key": {Data: map[string][]byte{"password": []byte("hush")}}},
		token:      volume.Token{Value: "token-1", RefreshAt: time.Unix(1000, 0)},
	}}
	r.Host = volume.NewHost(r.root, mounter, kinds.All(mounter, r.objects))
	r.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u-1", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	if err := r.root.Make(r.pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.TearDown(context.Background(), r.pod.UID); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	return r
}

// add puts a volume into the Pod and mounts it into its container.
func (r *rig) add(name string, source corev1.VolumeSource) {
	r.pod.Spec.Volumes = append(r.pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	r.pod.Spec.Containers[0].VolumeMounts = append(r.pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
}

func (r *rig) setUp(t *testing.T) volume.Volumes {
	t.Helper()
	volumes, err := r.trySetUp(t)
	if err != nil {
		t.Fatal(err)
	}
	return volumes
}

func (r *rig) trySetUp(t *testing.T) (volume.Volumes, error) {
	view := downward.View{Pod: r.pod, PodIPs: []string{"10.1.0.7"}}
	return r.SetUp(t.Context(), view, corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourceCPU: resource.MustParse("4")})
}

func wantFile(t *testing.T, dir, name, want string) {
	t.Helper()
	if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != want {
		t.Errorf("%s: %q, %v; want %q", name, data, err, want)
	}
}

func configMapSource(name string, change func(*corev1.ConfigMapVolumeSource)) corev1.VolumeSource {
	source := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
	if change != nil {
		change(source)
	}
	return corev1.VolumeSource{ConfigMap: source}
}

// POD-032, POD-057, POD-058, POD-059, POD-205: an emptyDir is shared, stays as containers leave it while its Pod lives, and
// goes with it.
func TestEmptyDir(t *testing.T) {
	r := newRig(t, mount.Kernel{})
	r.pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](2345)}
	r.add("disk", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	r.add("memory", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(resource.MustParse("1Mi"))}})
	volumes := r.setUp(t)
	for name, volume := range volumes {
		info, err := os.Stat(volume.Path)
		if err != nil || info.Mode().Perm() != 0o777 || info.Mode()&fs.ModeSetgid == 0 || info.Sys().(*syscall.Stat_t).Gid != 2345 || volume.ReadOnly {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		if err := errors.Join(os.WriteFile(filepath.Join(volume.Path, "work"), []byte("done"), 0o644), os.Chmod(volume.Path, 0o711)); err != nil {
			t.Fatal(err)
		}
	}
	again := r.setUp(t) // a restarted nodeagent, or a restarted container
	for name, volume := range again {
		wantFile(t, volume.Path, "work", "done")
		if info, _ := os.Stat(volume.Path); info.Mode().Perm() != 0o711 {
			t.Errorf("%s: the container's mode was changed to %v", name, info.Mode())
		}
	}
	var memory syscall.Statfs_t
	if err := syscall.Statfs(volumes["memory"].Path, &memory); err != nil || int64(memory.Blocks)*memory.Bsize != 1<<20 {
		t.Errorf("size of memory: %d, %v", int64(memory.Blocks)*memory.Bsize, err)
	}
	if err := r.TearDown(t.Context(), r.pod.UID); err != nil {
		t.Fatal(err)
	}
	if err := r.root.Make(r.pod); err != nil {
		t.Fatal(err)
	}
	for name, volume := range r.setUp(t) {
		if entries, err := os.ReadDir(volume.Path); err != nil || len(entries) != 0 {
			t.Errorf("%s of the next Pod holds %v, %v", name, entries, err)
		}
	}
}

func TestEmptyDirErrors(t *testing.T) {
	r := newRig(t, &mountfake.Mounter{})
	r.add("odd", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Tape"}})
	r.add("huge", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumHugePages}})
	r.add("fine", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	volumes, err := r.trySetUp(t)
	if err == nil || len(volumes) != 1 {
		t.Fatalf("%v, %v", volumes, err)
	}
	for _, want := range []string{
		`MountVolume.SetUp failed for volume "odd" : unknown storage medium "Tape": use "", Memory, HugePages or HugePages-<size>`,
		`MountVolume.SetUp failed for volume "huge" : medium HugePages needs containers that ask for pages of exactly one size, found 0 sizes`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

func TestHugePages(t *testing.T) {
	fake := &mountfake.Mounter{}
	r := newRig(t, fake)
	r.pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"hugepages-2Mi": resource.MustParse("8Mi")}
	r.add("one", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumHugePages}})
	r.add("two", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "HugePages-2Mi"}})
	r.setUp(t)
	for _, m := range fake.Mounts() {
		if m.Kind != "hugetlbfs" || m.Options != "pagesize=2097152 size=8388608 mode=777 gid=-1" {
			t.Errorf("%+v", m)
		}
	}
	if len(fake.Mounts()) != 2 {
		t.Errorf("%v", fake.Mounts())
	}
}

// A volume of memory is no larger than what its Pod may use.
func TestMemorySize(t *testing.T) {
	for limit, want := range map[string]string{"": "size=1073741824", "64Mi": "size=67108864", "8Gi": "size=1073741824"} {
		fake := &mountfake.Mounter{}
		r := newRig(t, fake)
		if limit != "" {
			r.pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
		}
		r.add("m", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})
		r.setUp(t)
		if got := fake.Mounts()[0].Options; !strings.HasPrefix(got, want+" ") {
			t.Errorf("limit %q: %s", limit, got)
		}
	}
}

func TestHostPath(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mknod(filepath.Join(base, "socket"), syscall.S_IFSOCK|0o600, 0); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		path  string
		kind  corev1.HostPathType
		error string
	}{
		{base, corev1.HostPathUnset, ""},
		{base + "/none", corev1.HostPathUnset, ""},
		{base, corev1.HostPathDirectory, ""},
		{file, corev1.HostPathDirectory, "is not a directory"},
		{base + "/none", corev1.HostPathDirectory, "is not a directory"},
		{base + "/new/dir", corev1.HostPathDirectoryOrCreate, ""},
		{file, corev1.HostPathDirectoryOrCreate, "is not a directory"},
		{file, corev1.HostPathFile, ""},
		{base, corev1.HostPathFile, "is not a file"},
		{base + "/newfile", corev1.HostPathFileOrCreate, ""},
		{base + "/no/parent", corev1.HostPathFileOrCreate, "no such file or directory"},
		{base + "/socket", corev1.HostPathSocket, ""},
		{file, corev1.HostPathSocket, "is not a socket file"},
		{"/dev/null", corev1.HostPathCharDev, ""},
		{file, corev1.HostPathCharDev, "is not a character device"},
		{"/dev/null", corev1.HostPathBlockDev, "is not a block device"},
		{file, "Odd", "Odd is not a known type"},
	} {
		r := newRig(t, &mountfake.Mounter{})
		r.add("host", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: row.path, Type: &row.kind}})
		volumes, err := r.trySetUp(t)
		if row.error == "" && (err != nil || volumes["host"].Path != row.path || volumes["host"].ReadOnly) {
			t.Errorf("%s as %q: %v, %v", row.path, row.kind, volumes, err)
		}
		if row.error != "" && (err == nil || !strings.HasSuffix(err.Error(), row.error) || !strings.Contains(err.Error(), "hostPath type check failed: ")) {
			t.Errorf("%s as %q: %v", row.path, row.kind, err)
		}
	}
	for _, made := range []string{"new/dir", "newfile", "file", "socket"} {
		if _, err := os.Lstat(filepath.Join(base, made)); err != nil {
			t.Errorf("taking a Pod down took %s away: %v", made, err)
		}
	}
}

// POD-063, POD-185, SAF-120: objects become files, follow their objects, and cannot be written.
func TestConfigMapAndSecret(t *testing.T) {
	r := newRig(t, mount.Kernel{})
	r.add("all", configMapSource("cm", nil))
	r.add("some", configMapSource("cm", func(s *corev1.ConfigMapVolumeSource) {
		s.DefaultMode = ptr.To[int32](0o600)
		s.Items = []corev1.KeyToPath{{Key: "a", Path: "deep/er", Mode: ptr.To[int32](0o444)}, {Key: "b", Path: "b"}}
	}))
	r.add("absent", configMapSource("none", func(s *corev1.ConfigMapVolumeSource) { s.Optional = ptr.To(true) }))
	r.add("secret", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key"}})
	volumes := r.setUp(t)
	wantFile(t, volumes["all"].Path, "a", "1")
	wantFile(t, volumes["all"].Path, "bin", "\x00\x01")
	wantFile(t, volumes["some"].Path, "deep/er", "1")
	wantFile(t, volumes["secret"].Path, "password", "hush")
	for name, mode := range map[string]fs.FileMode{"all/a": 0o644, "some/deep/er": 0o444, "some/b": 0o600, "secret/password": 0o644} {
		name, file, _ := strings.Cut(name, "/")
		if info, err := os.Stat(filepath.Join(volumes[name].Path, file)); err != nil || info.Mode() != mode {
			t.Errorf("%s/%s: %v, %v", name, file, info.Mode(), err)
		}
	}
	if entries, err := os.ReadDir(volumes["absent"].Path); err != nil || len(entries) != 2 { // the writer's own two
		t.Errorf("absent: %v, %v", entries, err)
	}
	if mounted, err := r.mounter.IsMount(volumes["secret"].Path); !mounted || err != nil {
		t.Errorf("a secret lies on disk: %v, %v", mounted, err)
	}
	r.objects.configMaps["ns/cm"] = &corev1.ConfigMap{Data: map[string]string{"a": "new", "b": "2", "c": "3"}}
	r.objects.configMaps["ns/none"] = &corev1.ConfigMap{Data: map[string]string{"late": "1"}}
	again := r.setUp(t)
	wantFile(t, again["all"].Path, "a", "new")
	wantFile(t, again["all"].Path, "c", "3")
	wantFile(t, again["some"].Path, "deep/er", "new")
	wantFile(t, again["absent"].Path, "late", "1")
	for name, volume := range again {
		if !volume.ReadOnly || volume.Path != volumes[name].Path {
			t.Errorf("%s: %+v", name, volume)
		}
	}
}

func TestMissingObjects(t *testing.T) {
	r := newRig(t, &mountfake.Mounter{})
	r.add("map", configMapSource("none", nil))
	r.add("key", configMapSource("cm", func(s *corev1.ConfigMapVolumeSource) { s.Items = []corev1.KeyToPath{{Key: "x", Path: "x"}} }))
	r.add("secret", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "none"}})
	r.add("secretkey", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key", Items: []corev1.KeyToPath{{Key: "y", Path: "y"}}}})
	r.add("disk", corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}})
	_, err := r.trySetUp(t)
	for _, want := range []string{
		`MountVolume.SetUp failed for volume "map" : configmap "none" not found`,
		`MountVolume.SetUp failed for volume "key" : configmap references non-existent config key: x`,
		`MountVolume.SetUp failed for volume "secret" : secret "none" not found`,
		`MountVolume.SetUp failed for volume "secretkey" : references non-existent secret key: y`,
		`MountVolume.SetUp failed for volume "disk" : the type of this volume is none that this node can serve: [emptyDir hostPath configMap secret downwardAPI projected]`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	r.pod.Spec.Containers[0].VolumeMounts = nil
	if volumes, err := r.trySetUp(t); err != nil || len(volumes) != 0 {
		t.Errorf("volumes that nobody mounts: %v, %v", volumes, err)
	}
}

// SAF-109, SAF-115, SAF-118, SAF-120
func TestDownwardAPI(t *testing.T) {
	r := newRig(t, mount.Kernel{})
	r.add("info", corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{DefaultMode: ptr.To[int32](0o440), Items: []corev1.DownwardAPIVolumeFile{
		{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
		{Path: "cpu", ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "app", Resource: "limits.cpu"}, Mode: ptr.To[int32](0o400)}}}})
	dir := r.setUp(t)["info"].Path
	wantFile(t, dir, "labels", `app="web"`)
	wantFile(t, dir, "cpu", "4")
	r.pod.Labels = map[string]string{"app": "web", "zone": "b"}
	r.setUp(t)
	wantFile(t, dir, "labels", "app=\"web\"\nzone=\"b\"")
	if info, _ := os.Stat(filepath.Join(dir, "cpu")); info.Mode() != 0o400 {
		t.Errorf("mode %v", info.Mode())
	}
	r.pod.Spec.Volumes[0].DownwardAPI.Items = []corev1.DownwardAPIVolumeFile{{Path: "x", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "nope"}}}
	if _, err := r.trySetUp(t); err == nil || !strings.Contains(err.Error(), "downward API file x: unsupported fieldPath: nope") {
		t.Errorf("got %v", err)
	}
}

func kubeAPIAccess() corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](3607)}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}, Items: []corev1.KeyToPath{{Key: "a", Path: "ca.crt"}}}},
		{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Optional: ptr.To(true)}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
	}}}
}

// POD-212: the files by which a container reaches the API, the token renewed in place.
func TestProjected(t *testing.T) {
	r := newRig(t, mount.Kernel{})
	r.add("api", kubeAPIAccess())
	volumes := r.setUp(t)
	dir := volumes["api"].Path
	wantFile(t, dir, "token", "token-1")
	wantFile(t, dir, "ca.crt", "1")
	wantFile(t, dir, "namespace", "ns")
	if at := volumes.RefreshAt(); !at.Equal(time.Unix(1000, 0)) {
		t.Errorf("refresh at %v", at)
	}
	if mounted, _ := r.mounter.IsMount(dir); !mounted {
		t.Error("a token lies on disk")
	}
	r.objects.token.Value = "token-2"
	r.setUp(t)
	wantFile(t, dir, "token", "token-2")
	if len(r.objects.asked) != 2 || r.objects.asked[0] != " 1h0m7s" {
		t.Errorf("asked %q", r.objects.asked)
	}
	r.objects.tokenErr = errors.New("failed to fetch token: forbidden")
	if _, err := r.trySetUp(t); err == nil || !strings.Contains(err.Error(), "failed to fetch token: forbidden") {
		t.Errorf("got %v", err)
	}
	wantFile(t, dir, "token", "token-2")
}

func TestProjectedUnknownSource(t *testing.T) {
	r := newRig(t, &mountfake.Mounter{})
	r.add("api", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}}}}})
	if _, err := r.trySetUp(t); err == nil || !strings.Contains(err.Error(), "use configMap, secret, downwardAPI or serviceAccountToken") {
		t.Errorf("got %v", err)
	}
}

// POD-063, SAF-098: a token is readable for the user or group that needs it, and for nobody else.
func TestTokenOwner(t *testing.T) {
	for name, row := range map[string]struct {
		change   func(*corev1.PodSpec)
		mode     fs.FileMode
		uid, gid uint32
	}{
		"nobody known": {func(*corev1.PodSpec) {}, 0o644, 0, 0},
		"one user":     {func(s *corev1.PodSpec) { s.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](77)} }, 0o600, 77, 0},
		"a group":      {func(s *corev1.PodSpec) { s.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](88)} }, 0o640, 0, 88},
		"two users": {func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To[int64](1)}}}
			s.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](77)}
		}, 0o644, 0, 0},
	} {
		r := newRig(t, &mountfake.Mounter{})
		r.add("api", kubeAPIAccess())
		row.change(&r.pod.Spec)
		info, err := os.Stat(filepath.Join(r.setUp(t)["api"].Path, "token"))
		if err != nil {
			t.Fatal(err)
		}
		if stat := info.Sys().(*syscall.Stat_t); info.Mode() != row.mode || stat.Uid != row.uid || stat.Gid != row.gid {
			t.Errorf("%s: %v, %d:%d", name, info.Mode(), stat.Uid, stat.Gid)
		}
	}
}

// POD-189, SAF-142, POD-165: after a Pod nothing is left, be it from a nodeagent that does not know the Pod any more; and
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
		if err := other.TearDown(t.Context(), "u-1"); err != nil {
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

// A mount that cannot be taken away stops the removal of files, and the next attempt finishes.
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

// A nodeagent that is killed at any step of setting up or taking down carries on where it was.
func TestFailpoints(t *testing.T) {
	r := newRig(t, mount.Kernel{})
	r.add("api", kubeAPIAccess())
	for _, point := range []string{"nodeagent/volume.setup.before", "nodeagent/volume.setup.after", "nodeagent/volume.teardown.before", "nodeagent/volume.teardown.after"} {
		if err := failpoint.Arm(point, "1*error(killed)"); err != nil {
			t.Fatal(err)
		}
		_, setUp := r.trySetUp(t)
		tearDown := r.TearDown(t.Context(), r.pod.UID)
		failpoint.Disarm(point)
		if err := errors.Join(setUp, tearDown); !errors.Is(err, failpoint.ErrInjected) {
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
		got, err := r.Mounts(volume.MountRequest{Pod: r.pod, Container: container, Volumes: volumes, Env: env, RecursiveReadOnly: able})
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
		{"read only", corev1.VolumeMount{Name: "disk", MountPath: "/d", ReadOnly: true}, true, "/d=/volumes/emptyDir/disk ro"},
		{"of an object", corev1.VolumeMount{Name: "map", MountPath: "/m"}, false, "/m=/volumes/configMap/map ro"},
		{"one file", corev1.VolumeMount{Name: "map", MountPath: "/m/a", SubPath: "a"}, false, "/m/a=/subpaths/app/0 ro"},
		{"expression", corev1.VolumeMount{Name: "disk", MountPath: "/d", SubPathExpr: "logs/$(POD)"}, false, "/d=/subpaths/app/0"},
		{"recursive", corev1.VolumeMount{Name: "disk", MountPath: "/d", ReadOnly: true, RecursiveReadOnly: enabled}, true, "/d=/volumes/emptyDir/disk ro rro"},
		{"recursive if possible", corev1.VolumeMount{Name: "disk", MountPath: "/d", ReadOnly: true, RecursiveReadOnly: ifPossible}, false, "/d=/volumes/emptyDir/disk ro"},
		{"from the host", corev1.VolumeMount{Name: "disk", MountPath: "/d", MountPropagation: ptr.To(corev1.MountPropagationHostToContainer)}, false, "/d=/volumes/emptyDir/disk PROPAGATION_HOST_TO_CONTAINER"},
		{"both ways", corev1.VolumeMount{Name: "disk", MountPath: "/d", MountPropagation: ptr.To(corev1.MountPropagationBidirectional)}, false, "/d=/volumes/emptyDir/disk PROPAGATION_BIDIRECTIONAL"},
	} {
		if got, err := mounts(row.able, row.mount); err != nil || got != row.want {
			t.Errorf("%s: %q, %v; want %q", row.name, got, err, row.want)
		}
	}
	if _, err := os.Stat(filepath.Join(volumes["disk"].Path, "logs/web-0")); err != nil {
		t.Errorf("the expression's folder: %v", err)
	}
	for want, mount := range map[string]corev1.VolumeMount{
		`cannot find volume "none" to mount into container "app"`:               {Name: "none"},
		`subPathExpr of volume "disk": missing value for "NOPE"`:                {Name: "disk", SubPathExpr: "$(NOPE)"},
		`failed to prepare subPath for volumeMount "disk" of container "app"`:   {Name: "disk", SubPath: "../x"},
		`cannot make mounts read-only recursively (recursiveReadOnly: Enabled)`: {Name: "disk", ReadOnly: true, RecursiveReadOnly: enabled},
	} {
		if _, err := mounts(false, mount); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
