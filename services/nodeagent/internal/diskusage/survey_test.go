package diskusage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/nodeagent/internal/plainfile/plainfiletest"
	"keelson.dev/services/nodeagent/internal/podfiles"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// written is a runtime that fails while it is broken.
type written struct{ broken atomic.Bool }

func (w *written) Layers(context.Context, string) ([]runtime.Layer, error) {
	if w.broken.Load() {
		return nil, errors.New("the runtime is away")
	}
	return []runtime.Layer{{Container: "app", Attempt: 1, Bytes: 5 << 20, Inodes: 3},
		{Container: "app", Bytes: 9 << 20, Inodes: 9}}, nil
}

// surveyed is a Survey of one Pod with two emptyDir volumes, one in memory, and one that cannot be measured. It
// counts how often Pods were measured.
func surveyed(t *testing.T) (s *Survey, pod *corev1.Pod, looks *atomic.Int32, w *written) {
	t.Helper()
	files := podfiles.Root{Dir: t.TempDir(), LogDir: t.TempDir()}
	pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "web", Namespace: "ns"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}, {Name: "late"}}}}
	for name, source := range map[string]corev1.VolumeSource{
		"disk":   {EmptyDir: &corev1.EmptyDirVolumeSource{}},
		"memory": {EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
		"host":   {HostPath: &corev1.HostPathVolumeSource{}},
	} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		write(t, filepath.Join(files.Volume("u", "emptyDir", name), "file"), 1<<20)
	}
	write(t, files.ContainerLog(pod, "app", 0), 2<<20)
	looks, w = &atomic.Int32{}, &written{}
	return NewSurvey(SurveyConfig{Log: zap.NewNop(), Meter: Meter{Files: files, Layers: w},
		Pods: func() []*corev1.Pod {
			looks.Add(1)
			return []*corev1.Pod{pod}
		},
		Folder: func(pod *corev1.Pod, v *corev1.Volume) (string, bool) {
			return files.Volume(pod.UID, "emptyDir", v.Name), v.EmptyDir != nil
		},
		Images: func(context.Context) (runtime.ImageFs, error) { return runtime.ImageFs{Dir: files.Dir}, nil },
	}), pod, looks, w
}

// near reports whether a usage is that many MiB, apart from what folders themselves use.
func near(u Usage, mib int64) bool { return u.Bytes >= mib<<20 && u.Bytes < mib<<20+64<<10 }

// All that is removed with the Pod counts, for the newest instance of each container; containers that never started
// have none.
func TestParcel(t *testing.T) {
	s, pod, _, w := surveyed(t)
	got, err := s.parcel(t.Context(), pod)
	if err != nil || got.Total == nil || !near(*got.Total, 5+2+1) {
		t.Errorf("all of the Pod: %+v, %v; want 8 MiB", got.Total, err)
	}
	if len(got.Logs) != 1 || !near(got.Logs["app"], 2) || len(got.Layers) != 1 || !near(got.Layers["app"], 5) {
		t.Errorf("containers: %+v", got)
	}
	if len(got.Volumes) != 2 || !near(got.Volumes["disk"].Usage, 1) || !near(got.Volumes["memory"].Usage, 1) ||
		got.Volumes["disk"].Space.Bytes == 0 {
		t.Errorf("volumes: %+v", got.Volumes)
	}
	w.broken.Store(true)
	if got, err := s.parcel(t.Context(), pod); err == nil || got.Total != nil || len(got.Layers) != 0 ||
		len(got.Logs) != 1 || len(got.Volumes) != 2 {
		t.Errorf("without the runtime: %+v, %v; want what else is known, and no sum", got, err)
	}
}

// What cannot be measured completely is not reported at all, nor is what a link leads to.
func TestParcelOfHostilePods(t *testing.T) {
	for name, lay := range map[string]func(dir string){
		"too deep": func(dir string) { plainfiletest.Nest(t, dir, 1000) },
		"a link": func(dir string) {
			if err := errors.Join(os.RemoveAll(dir), os.Symlink("/", dir)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		s, pod, _, _ := surveyed(t)
		lay(s.config.Meter.Files.Volume("u", "emptyDir", "disk"))
		got, _ := s.parcel(t.Context(), pod)
		if _, told := got.Volumes["disk"]; told || got.Total != nil || len(got.Volumes) != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for inodes, want := range map[int64]bool{200_000: true, 200_001: false} {
		if got := (Usage{Inodes: inodes}).whole(); got != want {
			t.Errorf("%d files are all that there are: %v, want %v", inodes, got, want)
		}
	}
}

// The disk is measured on request, and then not for a minute, however many requests come.
func TestSurvey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, looks, _ := surveyed(t)
		if found := s.Latest(t.Context()); found != nil {
			t.Errorf("a survey that does not run has found %+v", found)
		}
		begun := time.Now()
		if found := s.Known(); found != nil || time.Since(begun) > 0 {
			t.Errorf("after %v, a survey that does not run knows %+v", time.Since(begun), found)
		}
		<-s.wanted
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			s.Run(ctx)
			close(ended)
		}()
		<-time.After(time.Hour)
		for i, row := range []struct {
			pass time.Duration
			want int32
		}{
			{0, 1}, {0, 1}, {time.Minute - 1, 1}, {1, 2}, {0, 2}, {time.Hour, 3},
		} {
			<-time.After(row.pass)
			found := s.Latest(t.Context())
			synctest.Wait()
			if got := looks.Load(); got != row.want || found == nil || found.Images == nil || len(found.Pods) != 1 {
				t.Errorf("%d.: looked %d times, want %d; found %+v", i, got, row.want, found)
			}
		}
		if known, latest := s.Known(), s.Latest(t.Context()); known == nil || known != latest {
			t.Errorf("%+v is known, and %+v the latest", known, latest)
		}
		cancel()
		<-ended
	})
}
