package kinds_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/trustbundle/trustbundletest"
	"keelson.dev/services/nodeagent/internal/volume/mount"
	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

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
	for name, mode := range map[string]fs.FileMode{"all/a": 0o644, "some/deep/er": 0o444, "some/b": 0o600,
		"secret/password": 0o644} {
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
	r.add("key", configMapSource("cm", func(s *corev1.ConfigMapVolumeSource) {
		s.Items = []corev1.KeyToPath{{Key: "x",
			Path: "x"}}
	}))
	r.add("secret", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "none"}})
	r.add("secretkey", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key",
		Items: []corev1.KeyToPath{{Key: "y", Path: "y"}}}})
	r.add("disk", corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}})
	_, err := r.trySetUp(t)
	for _, want := range []string{
		`MountVolume.SetUp failed for volume "map" : configmap "none" not found`,
		`MountVolume.SetUp failed for volume "key" : configmap references non-existent config key: x`,
		`MountVolume.SetUp failed for volume "secret" : secret "none" not found`,
		`MountVolume.SetUp failed for volume "secretkey" : references non-existent secret key: y`,
		`MountVolume.SetUp failed for volume "disk" : the type of this volume is none that this node can serve: [emptyDir hostPath configMap secret downwardAPI projected image persistentVolumeClaim csi]`,
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
	r.add("info", corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{DefaultMode: ptr.To[int32](0o440),
		Items: []corev1.DownwardAPIVolumeFile{
			{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
			{Path: "cpu", ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "app", Resource: "limits.cpu"},
				Mode: ptr.To[int32](0o400)}}}})
	dir := r.setUp(t)["info"].Path
	wantFile(t, dir, "labels", `app="web"`)
	wantFile(t, dir, "cpu", "4")
	r.pod.Labels = map[string]string{"app": "web", "zone": "b"}
	r.setUp(t)
	wantFile(t, dir, "labels", "app=\"web\"\nzone=\"b\"")
	if info, _ := os.Stat(filepath.Join(dir, "cpu")); info.Mode() != 0o400 {
		t.Errorf("mode %v", info.Mode())
	}
	r.pod.Spec.Volumes[0].DownwardAPI.Items = []corev1.DownwardAPIVolumeFile{{Path: "x",
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "nope"}}}
	if _, err := r.trySetUp(t); err == nil || !strings.Contains(err.Error(),
		"downward API file x: unsupported fieldPath: nope") {
		t.Errorf("got %v", err)
	}
}

func kubeAPIAccess() corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token",
			ExpirationSeconds: ptr.To[int64](3607)}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"},
			Items: []corev1.KeyToPath{{Key: "a", Path: "ca.crt"}}}},
		{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "none"},
			Optional: ptr.To(true)}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace",
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
	}}}
}

// POD-212: the files with which a container reaches the API; the token is renewed in place.
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
	r.add("api", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{PodCertificate: &corev1.PodCertificateProjection{}}}}})
	if _, err := r.trySetUp(t); err == nil || !strings.Contains(err.Error(),
		"use configMap, secret, downwardAPI, serviceAccountToken or clusterTrustBundle") {
		t.Errorf("got %v", err)
	}
}

// The certificates of bundles by name and of a signer become files that follow them; an optional missing one is
// empty.
func TestCertificates(t *testing.T) {
	one, two := trustbundletest.Authority(t, "one"), trustbundletest.Authority(t, "two")
	bundle := func(name, signer, text string) certificatesv1.ClusterTrustBundle {
		return certificatesv1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: text}}
	}
	r := newRig(t, mount.Kernel{})
	r.objects.bundles = []certificatesv1.ClusterTrustBundle{bundle("mine", "", "text\n"+one),
		bundle("e.io:s:a", "e.io/s", two)}
	source := func(name, signer, path string, optional bool) corev1.VolumeProjection {
		p := &corev1.ClusterTrustBundleProjection{Path: path, Optional: &optional}
		if name != "" {
			p.Name = &name
		} else {
			p.SignerName, p.LabelSelector = &signer, &metav1.LabelSelector{}
		}
		return corev1.VolumeProjection{ClusterTrustBundle: p}
	}
	r.add("trust", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: ptr.To[int32](0o444),
		Sources: []corev1.VolumeProjection{source("mine", "", "mine.pem", false),
			source("", "e.io/s", "s/s.pem", false), source("late", "", "late.pem", true),
			source("", "e.io/none", "none.pem", true)}}})
	dir := r.setUp(t)["trust"].Path
	for path, want := range map[string]string{"mine.pem": one, "s/s.pem": two, "late.pem": "", "none.pem": ""} {
		wantFile(t, dir, path, want)
	}
	if info, err := os.Stat(filepath.Join(dir, "mine.pem")); err != nil || info.Mode() != 0o444 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	r.objects.bundles = []certificatesv1.ClusterTrustBundle{bundle("mine", "", two), bundle("late", "", one)}
	if _, err := r.trySetUp(t); err == nil || !strings.Contains(err.Error(),
		`volume "trust" : there is no ClusterTrustBundle of the signer e.io/s`) {
		t.Errorf("without the signer's: %v", err)
	}
	wantFile(t, dir, "mine.pem", one)
	r.objects.bundles = append(r.objects.bundles, bundle("e.io:s:b", "e.io/s", one+two))
	r.setUp(t)
	wantFile(t, dir, "mine.pem", two)
	wantFile(t, dir, "late.pem", one)
	if text, err := os.ReadFile(filepath.Join(dir, "s/s.pem")); err != nil || string(text) != one+two &&
		string(text) != two+one {
		t.Errorf("of the signer there are %s, %v", text, err)
	}
	r.pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](88)}
	r.setUp(t)
	if info, err := os.Stat(filepath.Join(dir, "mine.pem")); err != nil || info.Mode() != 0o640 {
		t.Errorf("for a group the mode is %v, %v", info.Mode(), err)
	}
}

// POD-063, SAF-098: only the user or group that needs a token may read it.
func TestTokenOwner(t *testing.T) {
	for name, row := range map[string]struct {
		change   func(*corev1.PodSpec)
		mode     fs.FileMode
		uid, gid uint32
	}{
		"nobody known": {func(*corev1.PodSpec) {}, 0o644, 0, 0},
		"one user": {func(s *corev1.PodSpec) {
			s.SecurityContext = &corev1.PodSecurityContext{
				RunAsUser: ptr.To[int64](77)}
		}, 0o600, 77, 0},
		"a group": {func(s *corev1.PodSpec) {
			s.SecurityContext = &corev1.PodSecurityContext{
				FSGroup: ptr.To[int64](88)}
		}, 0o640, 0, 88},
		"two users": {func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{
				{SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To[int64](1)}}}
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

// The files of one volume have at most 32 MiB together, however often it names an object, and no more than that is
// created.
func TestVolumesAreBounded(t *testing.T) {
	const mib = 1 << 20
	items := func(n int) (list []corev1.KeyToPath) {
		for i := range n {
			list = append(list, corev1.KeyToPath{Key: "m", Path: strconv.Itoa(i)})
		}
		return list
	}
	configMaps := func(n int) (list []corev1.VolumeProjection) {
		for i := range n {
			list = append(list, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "large"},
				Items:                []corev1.KeyToPath{{Key: "m", Path: strconv.Itoa(i)}}}})
		}
		return list
	}
	fields := func(n int) (list []corev1.DownwardAPIVolumeFile) {
		for i := range n {
			list = append(list, corev1.DownwardAPIVolumeFile{Path: strconv.Itoa(i),
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['m']"}})
		}
		return list
	}
	for name, source := range map[string]func(n int) corev1.VolumeSource{
		"configMap": func(n int) corev1.VolumeSource {
			return configMapSource("large", func(s *corev1.ConfigMapVolumeSource) { s.Items = items(n) })
		},
		"secret": func(n int) corev1.VolumeSource {
			return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "large", Items: items(n)}}
		},
		"projected": func(n int) corev1.VolumeSource {
			return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: configMaps(n)}}
		},
		"downwardAPI": func(n int) corev1.VolumeSource {
			return corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: fields(n)}}
		},
	} {
		for n, want := range map[int]string{32: "", 33: "33554432 bytes", 500: "33554432 bytes"} {
			r := newRig(t, &mountfake.Mounter{})
			text := strings.Repeat("x", mib)
			r.objects.configMaps["ns/large"] = &corev1.ConfigMap{Data: map[string]string{"m": text}}
			r.objects.secrets["ns/large"] = &corev1.Secret{Data: map[string][]byte{"m": []byte(text)}}
			r.pod.Annotations = map[string]string{"m": text}
			r.add("v", source(n))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := r.trySetUp(t)
			runtime.ReadMemStats(&after)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), `volume "v"`)) {
				t.Errorf("%s with %d MiB: %v, want %q", name, n, err, want)
			}
			if made := after.TotalAlloc - before.TotalAlloc; made > 100*mib {
				t.Errorf("%s with %d MiB: %d bytes were allocated", name, n, made)
			}
		}
	}
}
