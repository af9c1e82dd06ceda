package gc

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/services/nodeagent/internal/runtime"
	"keelson.dev/services/nodeagent/internal/runtime/fake"
)

// removals returns which images were removed after which time since the start.
func removals(r *fake.Runtime, start time.Time) []string {
	var out []string
	for _, call := range r.Calls() {
		if call.Verb == "RemoveImage" {
			out = append(out, call.Object+" after "+call.At.Sub(start).String())
		}
	}
	return out
}

// An image is removed when it was unused for longer than the maximum age, counted from the start of the agent; this
// is checked every five minutes, and does not depend on the disk. (imageMaximumGCAge, KubeletConfiguration
// v1beta1.)
func TestImagesGoByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		images := fake.New("used:1", "unused:1")
		sandbox := sandboxUsing(t, images, "used:1", "")
		stop := collecting(t, images, 10*time.Minute)
		start := time.Now()
		time.Sleep(32 * time.Minute)
		if err := images.RemoveSandbox(t.Context(), sandbox); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		stop()
		want := []string{"sha256:unused:1 after 15m0s", "sha256:used:1 after 45m0s"}
		if got := removals(images, start); !slices.Equal(got, want) {
			t.Errorf("%v were removed, want %v", got, want)
		}
	})
}

// An image that a container has as a volume is in use.
func TestImagesOfVolumesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		images := fake.New("used:1", "volume:1", "volume:2", "unused:1")
		sandbox := sandboxUsing(t, images, "used:1", "sha256:volume:1,sha256:volume:2")
		stop := collecting(t, images, 10*time.Minute)
		start := time.Now()
		time.Sleep(32 * time.Minute)
		if err := images.RemoveSandbox(t.Context(), sandbox); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		stop()
		got := removals(images, start)
		slices.Sort(got)
		want := []string{"sha256:unused:1 after 15m0s", "sha256:used:1 after 45m0s", "sha256:volume:1 after 45m0s",
			"sha256:volume:2 after 45m0s"}
		if !slices.Equal(got, want) {
			t.Errorf("%v were removed, want %v", got, want)
		}
	})
}

// A restarted agent does not know the earlier use of images: they count as new.
func TestAgeOfImagesAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		images := fake.New("unused:1")
		stop := collecting(t, images, 10*time.Minute)
		time.Sleep(14 * time.Minute)
		stop()
		start := time.Now()
		stop = collecting(t, images, 10*time.Minute)
		time.Sleep(time.Hour)
		stop()
		want := []string{"sha256:unused:1 after 15m0s"}
		if got := removals(images, start); !slices.Equal(got, want) {
			t.Errorf("%v were removed, want %v", got, want)
		}
	})
}

// sandboxUsing creates a sandbox with a container of an image, with others as volumes, and returns its ID.
func sandboxUsing(t *testing.T, images *fake.Runtime, image, volumes string) string {
	t.Helper()
	config := &cri.PodSandboxConfig{Metadata: &cri.PodSandboxMetadata{Name: "p", Uid: "u"},
		Labels: map[string]string{runtime.LabelPodUID: "u"}}
	id, err := images.RunSandbox(t.Context(), config, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = images.CreateContainer(t.Context(), id, &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: "c"}, Image: &cri.ImageSpec{Image: image},
		Annotations: map[string]string{runtime.AnnotationVolumeImages: volumes}}, config)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// collecting starts a collector that does not find the file system of the images; stop stops it.
func collecting(t *testing.T, images *fake.Runtime, maxAge time.Duration) (stop func()) {
	settings := DefaultSettings()
	settings.MaxAge = maxAge
	ctx, cancel := context.WithCancel(t.Context())
	go New(Config{Runtime: images, Log: zap.NewNop(), Images: settings,
		ImageFs: func(context.Context) (string, error) { return "", errors.New("no such file system") }}).Run(ctx)
	synctest.Wait()
	return func() {
		cancel()
		synctest.Wait()
	}
}
