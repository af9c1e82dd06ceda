package volumestats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/csiplugin"
	"keelson.dev/services/nodeagent/internal/csivolume"
)

// rig is a Survey in a synctest bubble, with one driver.
type rig struct {
	*Survey
	t *testing.T

	mu       sync.Mutex // guards the fields below
	standing []csivolume.Standing
	away     bool
	can      csiplugin.Capabilities
	calls    []string
	// answer is what the driver does.
	answer   func(ctx context.Context, volume string) (*csi.NodeGetVolumeStatsResponse, error)
	abnormal []string
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, can: csiplugin.Capabilities{Stats: true, Condition: true}}
	r.answer = func(context.Context, string) (*csi.NodeGetVolumeStatsResponse, error) { return says(9), nil }
	r.Survey = New(Config{Log: zap.NewNop(),
		Volumes: func() []csivolume.Standing { r.mu.Lock(); defer r.mu.Unlock(); return slices.Clone(r.standing) },
		Driver: func(string) (Driver, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.away {
				return nil, csiplugin.ErrNotRegistered
			}
			return r, nil
		},
		Abnormal: func(pod types.UID, volume, message string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.abnormal = append(r.abnormal, fmt.Sprint(pod, " ", volume, " ", message))
		}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

// says is an answer: a volume of which so many bytes are used.
func says(used int64) *csi.NodeGetVolumeStatsResponse {
	return &csi.NodeGetVolumeStatsResponse{
		Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: 100, Used: used}}}
}

func (r *rig) Can() csiplugin.Capabilities { r.mu.Lock(); defer r.mu.Unlock(); return r.can }

func (r *rig) Stats(ctx context.Context, q *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	r.mu.Lock()
	r.calls = append(r.calls, q.GetVolumeId()+" "+q.GetVolumePath()+" "+q.GetStagingTargetPath())
	answer := r.answer
	r.mu.Unlock()
	return answer(ctx, q.GetVolumeId())
}

// does changes what the driver does.
func (r *rig) does(answer func(ctx context.Context, volume string) (*csi.NodeGetVolumeStatsResponse, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// asked is what the driver was asked since the last check.
func (r *rig) asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// wantCalls checks what the driver was asked since the last check.
func (r *rig) wantCalls(want ...string) {
	r.t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Sort(r.calls); !slices.Equal(r.calls, want) {
		r.t.Errorf("the driver was asked %q, want %q", r.calls, want)
	}
	r.calls = nil
}

// want checks how many bytes of the volume of a claim of the Pod u-1 are said to be used; -1 for no answer.
func (r *rig) want(from Answers, claim string, want int) {
	r.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u-1"}}
	found, ok := from(pod, &corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	got := -1
	if ok {
		got = int(*found.Bytes.Used)
	}
	if got != want {
		r.t.Errorf("%d bytes of %s are used, want %d", got, claim, want)
	}
}

// standing is a volume of the Pod, by the name of its claim.
func standing(pod types.UID, claim string) csivolume.Standing {
	return csivolume.Standing{Pod: pod, Name: "pv-" + claim, Claim: claim, Driver: "d", Handle: "vol-" + claim,
		Target: fmt.Sprint("/", pod, "/", claim), Staging: "/staged/" + claim}
}

// A driver is asked once about a volume that two Pods have, and again after a minute if somebody wants to know.
func TestAskedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.standing = []csivolume.Standing{standing("u-1", "data"), standing("u-2", "data")}
		r.want(r.Latest(t.Context()), "data", 9)
		r.wantCalls("vol-data /u-1/data /staged/data")
		r.does(func(context.Context, string) (*csi.NodeGetVolumeStatsResponse, error) { return says(10), nil })
		time.Sleep(time.Minute - time.Millisecond)
		r.want(r.Latest(t.Context()), "data", 9)
		r.wantCalls()
		time.Sleep(time.Hour) // nobody reads, nobody is asked
		r.wantCalls()
		r.want(r.Known(), "data", -1) // the answer is too old to be true
		r.wantCalls("vol-data /u-1/data /staged/data")
		r.want(r.Known(), "data", 10)
		r.standing = nil
		r.Known()
		if len(r.volumes) != 0 {
			t.Errorf("%v is kept after its last Pod", r.volumes)
		}
	})
}

// A reader waits a second for a driver that hangs, and only once; later readers get the last answer at once. The call
// is given up, and the next ones are made ever more seldom.
func TestADriverThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.standing = []csivolume.Standing{standing("u-1", "bad"), standing("u-1", "good")}
		hang := func(ctx context.Context, volume string) (*csi.NodeGetVolumeStatsResponse, error) {
			if volume == "vol-good" {
				return says(9), nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		r.does(hang)
		read := func(wait time.Duration, bad, good int) {
			t.Helper()
			began := time.Now()
			found := r.Latest(t.Context())
			if took := time.Since(began); took != wait {
				t.Errorf("a reader waited %v, want %v", took, wait)
			}
			r.want(found, "bad", bad)
			r.want(found, "good", good)
		}
		read(time.Second, -1, 9)
		read(0, -1, 9)
		r.wantCalls("vol-bad /u-1/bad /staged/bad", "vol-good /u-1/good /staged/good")
		times := 0
		for range 60 { // an hour
			time.Sleep(time.Minute)
			r.Known()
			synctest.Wait()
		}
		for _, call := range r.asked() {
			if call == "vol-bad /u-1/bad /staged/bad" {
				times++
			}
		}
		if times < 5 || times > 10 {
			t.Errorf("within an hour the driver got %d calls that hang", times)
		}
		r.does(func(context.Context, string) (*csi.NodeGetVolumeStatsResponse, error) { return says(7), nil })
		time.Sleep(10 * time.Minute)
		r.Known()
		synctest.Wait()
		read(0, 7, 7)
		r.does(hang)
		time.Sleep(2 * time.Minute)
		read(0, 7, 7)
		synctest.Wait()
		read(0, 7, 9)
	})
}

// Calls that hang do not keep a driver from being asked about its other volumes for longer than their timeout, and
// there are never more than four.
func TestCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 6 {
			r.standing = append(r.standing, standing("u-1", fmt.Sprint(i)))
		}
		r.does(func(ctx context.Context, _ string) (*csi.NodeGetVolumeStatsResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		r.Known()
		synctest.Wait()
		if calls := r.asked(); len(calls) != 4 {
			t.Errorf("%d calls at once", len(calls))
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if calls := r.asked(); len(calls) != 6 {
			t.Errorf("%d calls after the first have timed out", len(calls))
		}
	})
}

// The last answer stays while a driver is away or fails. One that cannot tell is not asked or waited for.
func TestADriverThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.standing = []csivolume.Standing{standing("u-1", "data")}
		r.can.Stats = false
		began := time.Now()
		r.want(r.Latest(t.Context()), "data", -1)
		r.away = true
		r.want(r.Latest(t.Context()), "data", -1)
		if took := time.Since(began); took != 0 {
			t.Errorf("it was waited %v for a driver that cannot tell", took)
		}
		r.wantCalls()
		r.away, r.can.Stats = false, true
		r.want(r.Latest(t.Context()), "data", 9)
		r.away = true
		time.Sleep(2 * time.Minute)
		r.want(r.Latest(t.Context()), "data", 9)
		synctest.Wait()
		r.away = false
		r.does(func(context.Context, string) (*csi.NodeGetVolumeStatsResponse, error) {
			return nil, errors.New("broken")
		})
		time.Sleep(2 * time.Minute)
		r.Known()
		synctest.Wait()
		r.want(r.Known(), "data", 9)
		r.wantCalls("vol-data /u-1/data /staged/data", "vol-data /u-1/data /staged/data")
	})
}

// An answer about a path at which the volume is no longer counts for nothing: another Pod's is asked about.
func TestUnpublishedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.standing = []csivolume.Standing{standing("u-1", "data"), standing("u-2", "data")}
		r.does(func(context.Context, string) (*csi.NodeGetVolumeStatsResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.standing[0].Pod == "u-1" {
				r.standing = r.standing[1:]
				return says(99), nil
			}
			return says(9), nil
		})
		r.Known()
		r.wantCalls("vol-data /u-1/data /staged/data")
		r.Known()
		r.wantCalls("vol-data /u-2/data /staged/data")
		if v := r.volumes[id{"d", "vol-data"}]; v.figures == nil || *v.figures.Bytes.Used != 9 {
			t.Errorf("the answer is %v", v.figures)
		}
		r.standing = nil
		r.volumes[id{"d", "vol-data"}].nextAt = time.Time{}
		r.wanted.Send()
		r.wantCalls()
	})
}

// Each Pod of a volume that is out of order is told, once.
func TestAbnormal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.standing = []csivolume.Standing{standing("u-1", "data"), standing("u-2", "data"), standing("u-3", "other")}
		r.does(func(_ context.Context, volume string) (*csi.NodeGetVolumeStatsResponse, error) {
			return &csi.NodeGetVolumeStatsResponse{VolumeCondition: &csi.VolumeCondition{
				Abnormal: volume == "vol-data", Message: "sick"}}, nil
		})
		for range 3 {
			r.Known()
			synctest.Wait()
			time.Sleep(2 * time.Minute)
		}
		if want := []string{"u-1 pv-data sick", "u-2 pv-data sick"}; !slices.Equal(r.abnormal, want) {
			t.Errorf("told %q, want %q", r.abnormal, want)
		}
	})
}
