package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// runcRoot is a folder of runc, and a containerd that lists the recorded containers.
type runcRoot struct {
	*testing.T
	*server
	dir, config string
	// listed are CRI's sandboxes; unlisted is CRI's error instead.
	listed   []string
	unlisted error
}

func newRuncRoot(t *testing.T) *runcRoot {
	node := t.TempDir()
	r := &runcRoot{T: t, server: &server{}, dir: filepath.Join(node, "runc", "k8s.io"),
		config: fmt.Sprintf(`{"containerd": {"runtimes": {"runc": {"runtimeType": "io.containerd.runc.v2",
			"options": {"BinaryName": "runc", "Root": %q}}}}, "stateDir": %q}`, filepath.Join(node, "runc"),
			filepath.Join(node, "state", "cri"))}
	r.mkdir(r.dir)
	return r
}

func (r *runcRoot) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *runcRoot) mkdir(dir string) {
	r.Helper()
	r.check(os.MkdirAll(dir, 0o700))
}

// note creates the folder of a container with runc's record of its bundle.
func (r *runcRoot) note(id, state string) {
	r.Helper()
	r.mkdir(filepath.Join(r.dir, id))
	r.check(unix.Mkfifo(filepath.Join(r.dir, id, "exec.fifo"), 0o600))
	r.check(os.WriteFile(filepath.Join(r.dir, id, "state.json"), []byte(state), 0o600))
}

func (r *runcRoot) stateOf(id string) string {
	return fmt.Sprintf(`{"id": %q, "init_process_pid": 1, "config": {"labels": ["a=b", "bundle=%s"]}}`, id,
		filepath.Join(filepath.Dir(filepath.Dir(r.dir)), "state", "io.containerd.runtime.v2.task", "k8s.io", id))
}

// sweep ends orphans and returns the commands that were run. A runc command removes the folder of its last
// argument.
func (r *runcRoot) sweep() (ended []string, err error) {
	r.Helper()
	client := New(serve(r.T, r.server))
	client.run = func(_ context.Context, program string, args ...string) error {
		call := program + " " + strings.Join(args, " ")
		r.calls = append(r.calls, call)
		return errors.Join(r.fails[call], os.RemoveAll(filepath.Join(r.dir, args[len(args)-1])))
	}
	return client.EndOrphans(r.Context(), r.config, func(context.Context) (map[string]bool, error) {
		r.calls = append(r.calls, "list of CRI")
		return sets(r.listed...), r.unlisted
	})
}

func (r *runcRoot) left() []string {
	r.Helper()
	entries, err := os.ReadDir(r.dir)
	r.check(err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name()[:4])
	}
	return names
}

func (s containersServer) ListStream(r *containers.ListContainersRequest,
	stream containers.Containers_ListStreamServer) error {
	ids, call := s.recorded, "list"
	if slices.Equal(r.Filters, []string{sandboxesOnly}) {
		ids, call = s.recordedPauses, "list what CRI made as sandboxes"
	}
	for _, id := range ids {
		err := stream.Send(&containers.ListContainerMessage{Container: &containers.Container{ID: id}})
		if err != nil {
			return err
		}
	}
	return s.called(stream.Context(), call)
}

// runc's remains of recorded containers stay, regardless of what else is there; the others are removed, by runc
// itself if it has recorded what to end.
//
// SAF-197
func TestOrphansEnd(t *testing.T) {
	r := newRuncRoot(t)
	id := func(c string) string { return strings.Repeat(c, 64) }
	r.recorded = []string{id("a"), id("b")}
	r.note(id("a"), r.stateOf(id("a")))    // runs
	r.mkdir(filepath.Join(r.dir, id("b"))) // is being created
	r.note(id("c"), r.stateOf(id("c")))    // was lost while it ran
	r.mkdir(filepath.Join(r.dir, id("d"))) // was lost during its creation
	r.note(id("e"), `{"config": {"lab`)    // was lost with half a record
	r.note(id("f"), strings.ReplaceAll(r.stateOf(id("f")), "/state/", "/other/"))
	outside := t.TempDir()
	r.check(os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600))
	r.check(os.Symlink(outside, filepath.Join(r.dir, id("0"))))
	r.check(os.WriteFile(filepath.Join(r.dir, id("1")), nil, 0o600))
	r.mkdir(filepath.Join(r.dir, id("2")))
	r.check(unix.Mkfifo(filepath.Join(r.dir, id("2"), "state.json"), 0o600)) // nothing waits for its other end
	r.mkdir(filepath.Join(r.dir, id("3")))
	r.check(os.Symlink(outside, filepath.Join(r.dir, id("3"), "rootfs")))
	r.mkdir(filepath.Join(r.dir, "--help"))

	ended, err := r.sweep()
	if want := []string{id("2"), id("3"), id("c"), id("d"), id("e")}; err != nil || !slices.Equal(ended, want) {
		t.Errorf("ended %v, error %v; want %v", ended, err, want)
	}
	if got, want := r.left(), []string{"--he", "0000", "1111", "aaaa", "bbbb", "ffff"}; !slices.Equal(got, want) {
		t.Errorf("left is what begins with %v, want %v", got, want)
	}
	want := []string{"list what CRI made as sandboxes", "list", "list sandboxes",
		"runc --root " + r.dir + " delete --force " + id("c")}
	if !slices.Equal(r.calls, want) {
		t.Errorf("calls %q, want %q", r.calls, want)
	}
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Errorf("what a link leads to: %v", err)
	}
}

// SAF-197
func TestNothingEndsWhileContainerdDoesNotTell(t *testing.T) {
	id := strings.Repeat("c", 64)
	broken := status.Error(codes.Unavailable, "broken")
	for name, prepare := range map[string]func(*runcRoot){
		"sandboxes not told of":     func(r *runcRoot) { r.fails = map[string]error{"list sandboxes": broken} },
		"a list that breaks off":    func(r *runcRoot) { r.fails = map[string]error{"list": broken} },
		"a configuration of nobody": func(r *runcRoot) { r.config = "" },
		"a damaged configuration":   func(r *runcRoot) { r.config = "{" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuncRoot(t)
			r.note(id, r.stateOf(id))
			r.mkdir(filepath.Join(r.dir, strings.Repeat("d", 64)))
			prepare(r)
			ended, err := r.sweep()
			if len(ended) > 0 || len(r.left()) != 2 || (err == nil) != (r.config == "") {
				t.Errorf("ended %v, left %v, error %v", ended, r.left(), err)
			}
		})
	}
}

// An orphan that cannot be ended keeps no other from being ended, and is tried again.
func TestOrphanThatDoesNotEnd(t *testing.T) {
	r := newRuncRoot(t)
	first, second := strings.Repeat("c", 64), strings.Repeat("d", 64)
	r.note(first, r.stateOf(first))
	r.note(second, r.stateOf(second))
	r.fails = map[string]error{"runc --root " + r.dir + " delete --force " + first: errors.New("it hangs")}
	ended, err := r.sweep()
	if !slices.Equal(ended, []string{second}) || err == nil || !strings.Contains(err.Error(), "it hangs") {
		t.Errorf("ended %v, error %v", ended, err)
	}
}
