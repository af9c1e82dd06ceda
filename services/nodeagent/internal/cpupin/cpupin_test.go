package cpupin

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// fatal is a test or a property.
type fatal interface {
	Fatal(...any)
	Fatalf(string, ...any)
	Helper()
}

// world is a node of four CPUs, of which the first is reserved.
type world struct {
	fatal
	config  Config
	p       *Pins
	refused map[types.UID]podstate.Outcome

	mu      sync.Mutex // guards the fields below
	running []Running
	// on holds the CPUs of instances in the runtime, fails its error for the next call; calls counts the calls.
	on    map[string]string
	fails error
	calls int
}

func newWorld(t fatal, dir string) *world {
	w := &world{fatal: t, refused: map[types.UID]podstate.Outcome{}, on: map[string]string{}}
	w.config = Config{Settings: Settings{Policy: Static, Every: 10 * time.Second}, Root: dir, Log: zap.NewNop(),
		Machine:       func() (Machine, error) { return box(1, 4, 1), nil },
		ReservedMilli: 500,
		Running: func() []Running {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Clone(w.running)
		},
		Update: func(_ context.Context, id string, limits *cri.LinuxContainerResources) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.calls++
			err := w.fails
			if w.fails = nil; err == nil {
				w.on[id] = limits.GetCpusetCpus()
			}
			return err
		},
		Refuse: func(uid types.UID, why podstate.Outcome) { w.refused[uid] = why }}
	w.reopen()
	return w
}

// reopen starts the next agent.
func (w *world) reopen() {
	w.Helper()
	var err error
	if w.p, err = Open(w.config); err != nil {
		w.Fatal(err)
	}
}

// runs sets the running instances, and the runtime's next error.
func (w *world) runs(fails error, running ...Running) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running, w.fails = running, fails
}

// takes makes the node admit a Pod.
func (w *world) takes(pod *corev1.Pod) {
	w.Helper()
	if why := w.p.Admit(pod); why != nil {
		w.Fatalf("Pod %s: %s", pod.UID, why.Message)
	}
	if err := w.p.SetUp(pod); err != nil {
		w.Fatalf("Pod %s: %v", pod.UID, err)
	}
}

// has checks the CPUs of a container.
func (w *world) has(uid types.UID, name, want string, alone bool) {
	w.Helper()
	if cpus, exclusive := w.p.Container(uid, name); cpus != want || exclusive != alone {
		w.Fatalf("container %s of Pod %s has %s, alone %v; want %s", name, uid, cpus, exclusive, want)
	}
}

// A Pod keeps its CPUs when the agent dies; others share the rest, and get its CPUs back when it has ended.
func TestPinsOutliveTheAgent(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.takes(podOf("one", "main c 1"))
	w.takes(podOf("two", "init i 2", "main c 1", "main d 500m"))
	for range 2 {
		w.has("one", "c", "1", true)
		w.has("two", "i", "2-3", true)
		w.has("two", "c", "2", true)
		w.has("two", "d", "0", false)
		w.has("other", "c", "0", false)
		if !w.p.Holds("one") || w.p.Holds("other") || !w.p.Allocatable().Equals(cpuset.New(1, 2, 3)) {
			t.Errorf("of %s one has its own %v, another one %v", w.p.Allocatable(), w.p.Holds("one"),
				w.p.Holds("other"))
		}
		if why := w.p.Admit(podOf("three", "main c 1")); why == nil || why.Reason != "UnexpectedAdmissionError" ||
			why.Message != "Allocate failed due to not enough cpus available to satisfy request: requested=1, "+
				"available=0, which is unexpected" {
			t.Errorf("a Pod too many: %+v", why)
		}
		w.reopen()
	}
	if err := w.p.TearDown("two"); err != nil {
		t.Fatal(err)
	}
	w.has("other", "c", "0,2-3", false)
	w.reopen()
	w.has("other", "c", "0,2-3", false)
	w.takes(podOf("three", "main c 2"))
	if uids := w.p.Pods(); !slices.Equal(uids, []types.UID{"one", "three"}) {
		t.Errorf("Pods with their own are %v", uids)
	}
}

// CPUs promised to a Pod are promised to no other; they are recorded once the Pod is set up, and free when the Pod
// is gone.
func TestPromises(t *testing.T) {
	w := newWorld(t, t.TempDir())
	if why := w.p.Admit(podOf("one", "main c 3")); why != nil {
		t.Fatal(why)
	}
	if w.p.Admit(podOf("two", "main c 1")) == nil {
		t.Error("a second Pod is promised the same")
	}
	if _, err := os.Stat(w.p.file()); !os.IsNotExist(err) {
		t.Errorf("a promise is on disk: %v", err)
	}
	if err := w.p.TearDown("one"); err != nil {
		t.Fatal(err)
	}
	w.takes(podOf("two", "main c 1"))
}

// A Pod whose processes have ended frees its CPUs before it is torn down, in either order of the writes.
func TestStopped(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.takes(podOf("one", "main c 2"))
	w.takes(podOf("two", "main c 1"))
	next := podOf("next", "main c 2")
	if w.p.Admit(next) == nil {
		t.Fatal("two Pods have the same")
	}
	w.p.Stopped("one")
	w.has("other", "c", "0-2", false)
	w.takes(next)
	w.has("next", "c", "1-2", true)
	w.reopen()
	w.has("next", "c", "1-2", true)
	w.has("two", "c", "3", true)
	w.p.Stopped("two")
	if err := errors.Join(w.p.TearDown("one"), w.p.TearDown("two")); err != nil {
		t.Fatal(err)
	}
	w.reopen()
	w.has("other", "c", "0,3", false)
	w.p.Stopped("nobody")
	if uids := w.p.Pods(); !slices.Equal(uids, []types.UID{"next"}) {
		t.Errorf("Pods with their own are %v", uids)
	}
}

// A Pod that an agent under policy none has started gets no CPUs; one that was not started gets them when it is set
// up, or is ended.
func TestSetUpWithoutAdmission(t *testing.T) {
	w := newWorld(t, t.TempDir())
	began := podOf("began", "main c 3")
	began.Status.ContainerStatuses = []corev1.ContainerStatus{{ContainerID: "x://1"}}
	w.takes(began)
	w.has("began", "c", "0-3", false)
	if err := w.p.SetUp(podOf("one", "main c 3")); err != nil {
		t.Fatal(err)
	}
	w.has("one", "c", "1-3", true)
	if err := w.p.SetUp(podOf("two", "main c 1")); err == nil || w.refused["two"].Reason != podstate.ReasonUnexpected {
		t.Errorf("a Pod too many is told %v, %+v", err, w.refused)
	}
}

func TestPolicyNone(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.takes(podOf("one", "main c 1"))
	none := w.config
	none.Policy = None
	if _, err := Open(none); err == nil || !strings.Contains(err.Error(), "1 Pods have cpus of their own by it") {
		t.Errorf("with Pods that have their own: %v", err)
	}
	if err := w.p.TearDown("one"); err != nil {
		t.Fatal(err)
	}
	p, err := Open(none)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.file()); !os.IsNotExist(err) {
		t.Errorf("a file by which nobody has anything stays: %v", err)
	}
	pod := podOf("two", "main c 1")
	if why := p.Admit(pod); why != nil || p.SetUp(pod) != nil || p.Holds("two") || p.Allocatable().Size() != 0 {
		t.Errorf("under policy none: %v, %v", why, p.Holds("two"))
	}
	if cpus, exclusive := p.Container("two", "c"); cpus != "" || exclusive {
		t.Errorf("under policy none a container is bound to %q", cpus)
	}
	if err := p.TearDown("two"); err != nil {
		t.Error(err)
	}
	p.Run(t.Context())
}

// An unusable state on disk is reported in one sentence that says what to do, and stays unchanged.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.takes(podOf("one", "main c 1"))
	good, err := os.ReadFile(w.p.file())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		name, text string
		edit       func(*Config)
		want       string
	}{
		{"damaged", "x", nil, "FILE cannot be followed: it is damaged: invalid character 'x' looking for beginning " +
			"of value; drain the node, remove that file and start again"},
		{"another machine", string(good), func(c *Config) {
			c.Machine = func() (Machine, error) { return box(1, 2, 1), nil }
		}, "FILE cannot be followed: it is of a machine with cpus 0-3, and this one has 0-1; drain the node, remove " +
			"that file and start again"},
		{"nothing is reserved", "", func(c *Config) { c.ReservedMilli = 0 }, "static needs reserved cpus: " +
			"--reserved-cpus, or cpu in --system-reserved or --kube-reserved"},
	} {
		if err := os.WriteFile(w.p.file(), []byte(r.text), 0o600); err != nil {
			t.Fatal(err)
		}
		config := w.config
		if r.edit != nil {
			r.edit(&config)
		}
		want := "--cpu-manager-policy: " + strings.Replace(r.want, "FILE", filepath.Join(dir, "cpu_manager_state"), 1)
		if _, err := Open(config); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", r.name, err, want)
		}
		if left, err := os.ReadFile(w.p.file()); err != nil || string(left) != r.text {
			t.Errorf("%s: of %q is left %q, %v", r.name, r.text, left, err)
		}
	}
}

func TestReserve(t *testing.T) {
	for _, r := range []struct {
		named string
		milli int64
		want  string
	}{
		{"", 1, "0"}, {"", 1000, "0"}, {"", 1001, "0,2"}, {"", 9000, "0-3"}, {"3", 1, "3"}, {"1,3", 0, "1,3"},
		{"", 0, "--cpu-manager-policy: static needs reserved cpus: --reserved-cpus, or cpu in --system-reserved or " +
			"--kube-reserved"},
		{"3-5", 0, "--reserved-cpus: the machine has 0-3, not 4-5"},
	} {
		got, err := reserve(box(1, 2, 2), set(t, r.named), r.milli)
		said := got.String()
		if err != nil {
			said = err.Error()
		}
		if said != r.want {
			t.Errorf("%q, %d: %s, want %s", r.named, r.milli, said, r.want)
		}
	}
}

// Running instances move when a Pod gets CPUs and when it is gone; failed moves are retried.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, dir)
		other := func(id string) Running { return Running{Pod: "other", Name: "c", ID: id} }
		one := Running{Pod: "one", Name: "c", ID: "2"}
		w.runs(nil, other("1"), one)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.p.Run(ctx)
		sees := func(what string, want map[string]string) {
			t.Helper()
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			if !maps.Equal(w.on, want) {
				t.Errorf("%s, instances are on %v, want %v", what, w.on, want)
			}
		}
		sees("at first", map[string]string{"1": "0-3", "2": "0-3"})
		time.Sleep(30 * time.Second)
		sees("after a while", map[string]string{"1": "0-3", "2": "0-3"})
		w.mu.Lock()
		if w.calls != 2 {
			t.Errorf("of two instances the runtime is told %d times", w.calls)
		}
		w.mu.Unlock()
		w.takes(podOf("one", "main c 2"))
		sees("with a Pod of its own", map[string]string{"1": "0,3", "2": "1-2"})
		w.runs(nil, other("1"), one, other("3"))
		time.Sleep(10 * time.Second)
		sees("with a new instance", map[string]string{"1": "0,3", "2": "1-2", "3": "0,3"})
		w.runs(errors.New("busy"), other("1"))
		if err := w.p.TearDown("one"); err != nil {
			t.Fatal(err)
		}
		sees("while the runtime is busy", map[string]string{"1": "0,3", "2": "1-2", "3": "0,3"})
		time.Sleep(10 * time.Second)
		sees("when it is no longer", map[string]string{"1": "0-3", "2": "1-2", "3": "0,3"})
		w.runs(runtime.ErrNotFound, other("1"), other("4"))
		time.Sleep(20 * time.Second)
		sees("of an instance that had ended", map[string]string{"1": "0-3", "2": "1-2", "3": "0,3", "4": "0-3"})
	})
}

// In every sequence of starts, ends and deaths, no two Pods have the same CPU, none has a reserved one, a Pod keeps
// the CPUs that it was set up with, and all free CPUs are shared.
func TestPinsProperties(t *testing.T) {
	places := []string{"choose.before", "choose.after", "free.before", "free.after"}
	disarm := func() {
		for _, place := range places {
			failpoint.Disarm("nodeagent/cpu." + place)
		}
	}
	defer disarm()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		disarm()
		if err := os.Remove(filepath.Join(dir, fileName)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		w := newWorld(t, dir)
		stands := map[types.UID]string{}
		uid := rapid.SampledFrom([]types.UID{"a", "b", "c"})
		pods := map[types.UID]*corev1.Pod{"a": podOf("a", "main c 1"), "b": podOf("b", "init i 2", "main c 1"),
			"c": podOf("c", "sidecar s 1", "main c 1")}
		acts := map[string]func(){
			"admit": func() { w.p.Admit(pods[uid.Draw(t, "uid")]) },
			"setUp": func() {
				uid := uid.Draw(t, "uid")
				if w.p.pods[uid].stopped { // a Pod does not start again
					return
				}
				if err := w.p.SetUp(pods[uid]); err == nil {
					stands[uid] = w.p.pods[uid].String()
				}
			},
			"tearDown": func() {
				uid := uid.Draw(t, "uid")
				delete(stands, uid)
				_ = w.p.TearDown(uid) // a failed call is repeated
			},
			"stopped": func() {
				uid := uid.Draw(t, "uid")
				delete(stands, uid)
				w.p.Stopped(uid)
				if rapid.Bool().Draw(t, "torn down") {
					_ = w.p.TearDown(uid)
				}
			},
			"fail": func() {
				place := rapid.SampledFrom(places)
				if err := failpoint.Arm("nodeagent/cpu."+place.Draw(t, "place"), "1*error(disk full)"); err != nil {
					t.Fatal(err)
				}
			},
			"restart": func() { w.reopen() },
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			acts[rapid.SampledFrom(slices.Sorted(maps.Keys(acts))).Draw(t, "act")]()
			shared := w.p.sharedLocked()
			if !w.p.reserved.IsSubsetOf(shared) {
				t.Fatalf("reserved is %s, shared %s", w.p.reserved, shared)
			}
			sum := shared.Size()
			for _, h := range w.p.pods {
				if !h.stopped {
					sum += h.all().Size()
				}
			}
			if sum != 4 {
				t.Fatalf("%d of 4 are shared or somebody's: %v", sum, w.p.pods)
			}
			for uid, want := range stands {
				if got := w.p.pods[uid].String(); got != want {
					t.Fatalf("Pod %s has %s, not %s", uid, got, want)
				}
			}
		}
	})
}

func TestReadMachine(t *testing.T) {
	sys := t.TempDir()
	lay := func(file, text string) {
		t.Helper()
		file = filepath.Join(sys, "devices/system/cpu", file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadMachine(sys); err == nil {
		t.Error("a machine without any is read")
	}
	lay("online", "0,2-3\n")
	lay("cpu0/topology/core_id", "4\n")
	lay("cpu0/topology/physical_package_id", "1\n")
	lay("cpu2/topology/core_id", "4\n")
	lay("cpu2/topology/physical_package_id", "-1\n")
	got, err := ReadMachine(sys)
	if want := (Machine{{0, 4, 1}, {2, 4, -1}, {3, 3, 0}}); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	lay("cpu2/topology/core_id", "four\n")
	if _, err := ReadMachine(sys); err == nil || !strings.HasSuffix(err.Error(), `core_id holds "four\n"`) {
		t.Errorf("a core without a number: %v", err)
	}
	lay("online", "\n")
	if _, err := ReadMachine(sys); err == nil {
		t.Error("a machine without processors is read")
	}
}
