package containerd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nothingListed is a CRI that should not be called.
func nothingListed(context.Context) (map[string]bool, error) {
	return nil, errors.New("CRI was asked without need")
}

// newGivenUp has a sandbox that CRI does not know, beside one that runs with a container.
func newGivenUp(t *testing.T) (r *runcRoot, lost string) {
	r = newRuncRoot(t)
	lost, runs, inside := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
	r.version = "v2.0.0"
	r.recorded, r.recordedPauses = []string{lost, runs, inside}, []string{lost, runs}
	r.leased, r.listed = []string{runs}, []string{runs}
	for _, id := range r.recorded {
		r.note(id, r.stateOf(id))
	}
	r.runtime = &containers.Container_Runtime{Name: runcShim}
	return r, lost
}

// A sandbox that CRI has given up is ended and then forgotten, with runc's remains of it; all else stays.
//
// SAF-197
func TestASandboxThatWasGivenUpEnds(t *testing.T) {
	r, lost := newGivenUp(t)
	ended, err := r.sweep()
	if !slices.Equal(ended, []string{lost}) || err != nil {
		t.Errorf("ended %v, error %v; want %v", ended, err, lost)
	}
	if got, want := r.left(), []string{"bbbb", "cccc"}; !slices.Equal(got, want) {
		t.Errorf("left is what begins with %v, want %v", got, want)
	}
	// The order is essential, see lostSandboxes.
	want := []string{"list what CRI made as sandboxes", "list leases", "list of CRI", "get " + lost, "kill " + lost,
		"wait " + lost, "delete " + lost, "runc --root /run/containerd/runc/k8s.io delete --force " + lost,
		"forget " + lost}
	if len(r.calls) < len(want) || !slices.Equal(r.calls[:len(want)], want) {
		t.Errorf("calls %q, want %q first", r.calls, want)
	}
}

// SAF-197
func TestNoSandboxEndsWhileSomethingIsNotTold(t *testing.T) {
	broken := status.Error(codes.Unavailable, "broken")
	for name, row := range map[string]struct {
		prepare func(r *runcRoot, lost string)
		told    bool
	}{
		"the leases": {func(r *runcRoot, _ string) { r.fails = map[string]error{"list leases": broken} }, true},
		"CRI's list": {func(r *runcRoot, _ string) { r.unlisted = errors.New("broken") }, true},
		"an end that fails": {func(r *runcRoot, lost string) { r.fails = map[string]error{"delete " + lost: broken} },
			true},
		"an older containerd": {func(r *runcRoot, _ string) { r.version = "v1.7.27" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, lost := newGivenUp(t)
			row.prepare(r, lost)
			ended, err := r.sweep()
			if slices.Contains(r.calls, "forget "+lost) || len(ended) > 0 || (err != nil) != row.told {
				t.Errorf("ended %v, error %v, calls %q", ended, err, r.calls)
			}
		})
	}
}
