package gc

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"keelson.dev/kit/events"
	"keelson.dev/services/nodeagent/internal/runtime/fake"
)

// onAnyDisk are settings under which no disk is too full, including that of the test's machine.
var onAnyDisk = Settings{HighPercent: 101, LowPercent: 100, MinAge: time.Minute}

// A failure is reported when it begins, for images at the second failure, and again only after a successful round.
func TestFailuresAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		images := fake.New()
		images.SetImageFs(t.TempDir())
		var told []string
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		go New(Config{Runtime: images, Log: zap.NewNop(), Images: onAnyDisk,
			ImageFs: func(ctx context.Context) (string, error) {
				fs, err := images.ImageFs(ctx)
				return fs.Dir, err
			},
			Record: func(e events.Event) {
				told = append(told, e.Type+" "+e.Reason+" "+time.Since(began).String())
			}}).Run(ctx)
		synctest.Wait()
		for range 2 {
			time.Sleep(4*time.Minute + 30*time.Second) // 4:30, 24:30
			images.SetDown(errors.New("no runtime"))
			time.Sleep(15 * time.Minute) // 19:30, 39:30
			images.SetDown(nil)
			time.Sleep(30 * time.Second) // 20:00, 40:00: the rounds of this moment may come before or after
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		want := []string{"Warning ContainerGCFailed 5m0s", "Warning ImageGCFailed 10m0s",
			"Warning ContainerGCFailed 25m0s", "Warning ImageGCFailed 30m0s"}
		slices.Sort(want)
		slices.Sort(told)
		if !slices.Equal(told, want) {
			t.Errorf("told: %q, want %q", told, want)
		}
	})
}

// A disk that is full of other data than images is reported once.
func TestTooLittleIsTold(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		images := fake.New("unused:1")
		var told []events.Event
		ctx, cancel := context.WithCancel(t.Context())
		go New(Config{Runtime: images, Log: zap.NewNop(), Images: Settings{MinAge: time.Nanosecond},
			ImageFs: func(context.Context) (string, error) { return dir, nil },
			Record:  func(e events.Event) { told = append(told, e) }}).Run(ctx)
		time.Sleep(time.Hour)
		cancel()
		synctest.Wait()
		words := regexp.MustCompile(`^Failed to garbage collect required amount of images\. Attempted to free \d+ ` +
			`bytes, but only found \d+ bytes eligible to free\.$`)
		if len(told) != 2 || told[0].Reason != "FreeDiskSpaceFailed" || told[1].Reason != "ImageGCFailed" ||
			!words.MatchString(told[0].Message) || !words.MatchString(told[1].Message) {
			t.Errorf("told: %+v", told)
		}
	})
}

// A round that is cut off by the end of the agent has not failed.
func TestAnEndIsNoFailure(t *testing.T) {
	told := 0
	c := New(Config{Record: func(events.Event) { told++ }})
	ctx, cancel := context.WithCancel(t.Context())
	c.tell(ctx, true, "ContainerGCFailed", errors.New("no runtime"))
	cancel()
	c.tell(ctx, true, "ContainerGCFailed", ctx.Err())
	if told != 1 {
		t.Errorf("told %d times, want once", told)
	}
}
