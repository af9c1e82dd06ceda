package evict

import (
	"context"
	"errors"
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

	"keelson.dev/services/nodeagent/internal/plainfile/plainfiletest"
	"keelson.dev/services/nodeagent/internal/podstate"
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

func TestDecide(t *testing.T) {
	v := emptyDir("cache", "1Mi", "")
	for _, r := range []struct {
		name    string
		usage   Usage
		message string
	}{
		{"nothing", Usage{}, ""},
		{"at the limit", Usage{Bytes: 1 << 20}, ""},
		{"beyond the limit", Usage{Bytes: 1<<20 + 1}, `Usage of EmptyDir volume "cache" exceeds the limit "1Mi". `},
		{"too deep", Usage{TooDeep: true},
			`Folders of EmptyDir volume "cache" are nested deeper than 1000, so that its limit "1Mi" cannot be held. `},
	} {
		got := decide(&v, r.usage)
		if (got != nil) != (r.message != "") || got != nil && (got.Message != r.message || got.Reason != "Evicted" ||
			got.Grace != time.Second) {
			t.Errorf("%s: %+v, want message %q", r.name, got, r.message)
		}
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

// What a volume holds is what its files take of the disk, each once; nothing outside counts.
func TestMeasure(t *testing.T) {
	const unlimited = 1 << 40
	outside := t.TempDir()
	write(t, filepath.Join(outside, "big"), 1<<20)
	dir := t.TempDir()
	bare, err := measure(t.Context(), dir, unlimited)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a"), 64<<10)
	write(t, filepath.Join(dir, "b", "c", "d"), 64<<10)
	for link, target := range map[string]string{"link": outside, "b/file": filepath.Join(outside, "big"), "loop": dir} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b", "again")); err != nil {
		t.Fatal(err)
	}
	got, err := measure(t.Context(), dir, unlimited)
	// Folders and links may take some blocks themselves.
	if used := got.Bytes - bare.Bytes; err != nil || used < 128<<10 || used > 128<<10+64<<10 || got.TooDeep {
		t.Errorf("two files of 64 KiB take %d bytes, %v", used, err)
	}
	if got, err := measure(t.Context(), filepath.Join(dir, "nowhere"), unlimited); err != nil || got.Bytes != 0 {
		t.Errorf("a folder that is not there holds %d bytes, %v", got.Bytes, err)
	}
	// What is enough for the verdict ends the look, so that its cost is bounded by the limit.
	for i := range 10 {
		write(t, filepath.Join(dir, fmt.Sprint("more", i)), 64<<10)
	}
	if got, err := measure(t.Context(), dir, 64<<10); err != nil || got.Bytes <= 64<<10 || got.Bytes > 256<<10 {
		t.Errorf("looking for more than 64 KiB measured %d bytes, %v", got.Bytes, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure(ended, dir, unlimited); !errors.Is(err, context.Canceled) {
		t.Errorf("measuring went on after its end: %v", err)
	}
}

// Folders that are nested without end neither exhaust the agent nor hide what they hold.
func TestDepth(t *testing.T) {
	for depth, want := range map[int]bool{999: false, 1000: true} {
		dir := t.TempDir()
		plainfiletest.Nest(t, dir, depth)
		if got, err := measure(t.Context(), dir, 1<<40); err != nil || got.TooDeep != want {
			t.Errorf("%d levels: too deep %v, %v; want %v", depth, got.TooDeep, err, want)
		}
	}
}

// A Pod that holds too much is evicted within the period that is promised; one that does not is left alone.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "full", "cache", "file"), 2<<20)
	write(t, filepath.Join(dir, "fits", "cache", "file"), 1<<10)
	pods := make([]*corev1.Pod, 0, 2)
	for _, uid := range []string{"full", "fits"} {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)},
			Spec: corev1.PodSpec{Volumes: []corev1.Volume{emptyDir("cache", "1Mi", "")}}})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var evicted []string
		began := time.Now()
		go Run(ctx, Config{
			Log: zap.NewNop(), Pods: func() []*corev1.Pod { return pods },
			VolumeDir: func(uid types.UID, volume string) string { return filepath.Join(dir, string(uid), volume) },
			Evict: func(uid types.UID, why podstate.Outcome) {
				evicted = append(evicted, fmt.Sprintf("%s after %v: %s", uid, time.Since(began), why.Reason))
			},
		})
		<-time.After(10 * time.Second)
		synctest.Wait()
		cancel()
		synctest.Wait()
		if got := strings.Join(evicted, "; "); got != "full after 10s: Evicted" {
			t.Errorf("evicted %q, want the full Pod alone, after ten seconds", got)
		}
	})
}
