package evict

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/podfiles"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/runtime"
)

func emptyDir(name, limit string, medium corev1.StorageMedium) corev1.Volume {
	source := &corev1.EmptyDirVolumeSource{Medium: medium}
	if limit != "" {
		quantity := resource.MustParse(limit)
		source.SizeLimit = &quantity
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: source}}
}

func TestLimited(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		emptyDir("disk", "1Mi", ""), emptyDir("free", "", ""), emptyDir("zero", "0", ""),
		emptyDir("memory", "1Mi", corev1.StorageMediumMemory),
		{Name: "path", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}},
	}}}
	pod.Spec.Volumes = append(pod.Spec.Volumes, emptyDir("byte", "1", ""), emptyDir("below", "-1", ""),
		emptyDir("pages", "1Mi", corev1.StorageMediumHugePages))
	if got := limited(pod); len(got) != 2 || got[0].Name != "disk" || got[1].Name != "byte" {
		t.Errorf("%d volumes are watched, want disk and byte: %v", len(got), got)
	}
	pod.Status.Phase = corev1.PodFailed
	if got := limited(pod); len(got) != 0 {
		t.Errorf("%d volumes of a Pod that has ended are watched", len(got))
	}
}

func TestDecideVolume(t *testing.T) {
	v := emptyDir("cache", "1Mi", "")
	for _, r := range []struct {
		name    string
		usage   diskusage.Usage
		message string
	}{
		{"nothing", diskusage.Usage{}, ""},
		{"at the limit", diskusage.Usage{Bytes: 1 << 20}, ""},
		{"beyond the limit", diskusage.Usage{Bytes: 1<<20 + 1},
			`Usage of EmptyDir volume "cache" exceeds the limit "1Mi". `},
		{"too deep", diskusage.Usage{TooDeep: true},
			`Folders of EmptyDir volume "cache" are nested deeper than 1000, so that its limit "1Mi" cannot be held. `},
	} {
		wants(t, r.name, decideVolume(&v, r.usage), r.message)
	}
}

// wants expects an eviction with the message, or none for an empty one. SAF-071: the Pod itself is the cause.
func wants(t *testing.T, name string, got *podstate.Outcome, message string) {
	t.Helper()
	if (got != nil) != (message != "") || got != nil && (got.Message != message || got.Reason != "Evicted" ||
		got.Grace != time.Second || got.Disruption) {
		t.Errorf("%s: %+v, want message %q", name, got, message)
	}
}

// A Pod's usage is compared with the limits of all its containers together, and what each container writes with its
// own limit.
func TestDecidePod(t *testing.T) {
	container := func(name, limit string) corev1.Container {
		c := corev1.Container{Name: name}
		if limit != "" {
			c.Resources.Limits = corev1.ResourceList{"ephemeral-storage": resource.MustParse(limit)}
		}
		return c
	}
	used := func(logs, layer, volume int64) *diskusage.Pod {
		return &diskusage.Pod{Volumes: map[string]diskusage.Usage{"v": {Bytes: volume}},
			Containers: map[string]diskusage.Container{"a": {Logs: diskusage.Usage{Bytes: logs},
				Layer: diskusage.Usage{Bytes: layer}}}}
	}
	deep := used(0, 0, 0)
	deep.Volumes["v"] = diskusage.Usage{TooDeep: true}
	one := []corev1.Container{container("a", "1Mi")}
	two := []corev1.Container{container("a", "1Mi"), container("b", "2Mi")}
	all, apart := diskusage.Parts{Files: true, Layers: true}, diskusage.Parts{Files: true}
	const total = "Pod ephemeral local storage usage exceeds the total limit of containers %s. "
	for _, r := range []struct {
		name       string
		containers []corev1.Container
		usage      *diskusage.Pod
		parts      diskusage.Parts
		message    string
	}{
		{"no limits", []corev1.Container{container("a", "")}, used(1<<30, 1<<30, 1<<30), all, ""},
		{"at the limit", one, used(1<<18, 1<<19, 1<<18), all, ""},
		{"beyond it", one, used(1<<18, 1<<19, 1<<18+1), all, fmt.Sprintf(total, "1Mi")},
		{"layers lie elsewhere", one, used(1<<18, 1<<30, 1<<18), apart, ""},
		{"logs beyond it, layers elsewhere", one, used(1<<20+1, 0, 0), apart, fmt.Sprintf(total, "1Mi")},
		{"two together at the limit", two, used(0, 0, 3<<20), all, ""},
		{"two together beyond it", two, used(0, 0, 3<<20+1), all, fmt.Sprintf(total, "3Mi")},
		{"one of two at its own", two, used(1<<19, 1<<19, 1<<20), all, ""},
		{"one of two beyond its own", two, used(1<<19, 1<<19+1, 1<<20), all,
			`Container a exceeded its local ephemeral storage limit "1Mi". `},
		{"too deep", one, deep, all, "Folders of the Pod are nested deeper than 1000, so that the total limit of " +
			"containers 1Mi cannot be held. "},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: r.containers}}
		wants(t, r.name, decidePod(pod, r.usage, r.parts), r.message)
		pod.Status.Phase = corev1.PodSucceeded
		wants(t, r.name+", and it has ended", decidePod(pod, r.usage, r.parts), "")
	}
}

func write(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A Pod that uses too much is evicted within the promised period; other Pods are left alone, and so are critical
// ones.
func TestRun(t *testing.T) {
	files := podfiles.Root{Dir: t.TempDir(), LogDir: t.TempDir()}
	pod := func(uid string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Name: uid, Namespace: "ns"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "m"}},
				Volumes: []corev1.Volume{emptyDir("cache", "1Mi", "")}}}
	}
	pods := []*corev1.Pod{pod("full"), pod("fits"), pod("talks"), pod("writes"), pod("critical")}
	for _, p := range pods[2:4] {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"ephemeral-storage": resource.MustParse("1Mi")}
	}
	write(t, filepath.Join(files.Volume("full", "emptyDir", "cache"), "file"), 2<<20)
	write(t, filepath.Join(files.Volume("critical", "emptyDir", "cache"), "file"), 2<<20)
	write(t, filepath.Join(files.Volume("fits", "emptyDir", "cache"), "file"), 1<<10)
	write(t, files.ContainerLog(pods[2], "m", 0), 2<<20)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var evicted []string
		began := time.Now()
		go Run(ctx, Config{
			Log: zap.NewNop(), Pods: func() []*corev1.Pod { return pods },
			IsCritical: func(p *corev1.Pod) bool { return p.Name == "critical" },
			Meter: diskusage.Meter{Files: files, Layers: written{
				"writes": {{Container: "m", Attempt: 1, Bytes: 2 << 20}, {Container: "m", Bytes: 1}},
				"talks":  {{Container: "m", Bytes: 2 << 20}, {Container: "m", Attempt: 1}}}},
			Parts: func(context.Context) diskusage.Parts { return diskusage.Parts{Files: true, Layers: true} },
			Evict: func(uid types.UID, why podstate.Outcome) {
				evicted = append(evicted, fmt.Sprintf("%s after %v: %s", uid, time.Since(began), why.Reason))
			},
		})
		<-time.After(10 * time.Second)
		synctest.Wait()
		cancel()
		synctest.Wait()
		const want = "full after 10s: Evicted; talks after 10s: Evicted; writes after 10s: Evicted"
		if got := strings.Join(evicted, "; "); got != want {
			t.Errorf("evicted %q, want %q", got, want)
		}
	})
}

// written is what containers have written, by the UID of their Pod.
type written map[string][]runtime.Layer

func (w written) Layers(_ context.Context, uid string) ([]runtime.Layer, error) { return w[uid], nil }
