package mesh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/state"
	"keelson.dev/cli/internal/upgrade"
)

// upgradeBed is a machine of keel init on which keel upgrade is tried.
type upgradeBed struct {
	*bed
	around  *fakeSurroundings
	options Upgrading
}

// fakeSurroundings are a mesh of one machine, unless a test says something else.
type fakeSurroundings struct {
	found survey
	err   error
	// reported is what the node's agent reports; nodeErr is set if the node does not become ready.
	reported string
	nodeErr  error
}

func (f *fakeSurroundings) survey(context.Context) (survey, error) { return f.found, f.err }

func (f *fakeSurroundings) awaitNode(_ context.Context, version string) error {
	f.reported = version
	return f.nodeErr
}

// A mesh of commits, of which none is known to be newer, goes to and fro.
const before, after = "aaaa111", "bbbb222"

// newUpgradeBed runs the daemons of the version before; those of the version after are in the folder of options.From.
func newUpgradeBed(t *testing.T) *upgradeBed {
	t.Helper()
	b := &upgradeBed{bed: newBed(t), around: &fakeSurroundings{}}
	own := upgrade.ParseVersion(before)
	b.around.found.fleet = upgrade.Fleet{Own: &own,
		Agents: []upgrade.Peer{{Machine: "vm", Version: own}}}
	b.install(t, b.bed.options.Programs, before, "")
	b.mustInit(t)
	b.options = Upgrading{From: filepath.Join(filepath.Dir(b.bed.options.Programs), "new"), Within: time.Minute}
	b.install(t, b.options.From, after, "")
	return b
}

// install writes the daemons' programs of a version, with a comment.
func (b *upgradeBed) install(t *testing.T, folder, version, comment string) {
	t.Helper()
	must(t, os.MkdirAll(folder, 0o755))
	for _, daemon := range upgrade.Daemons {
		b.put(t, folder, daemon, version, comment)
	}
}

// put writes a daemon's program, as a package manager does.
func (b *upgradeBed) put(t *testing.T, folder, daemon, version, comment string) {
	t.Helper()
	file := filepath.Join(folder, "keelson-"+daemon)
	text := fmt.Sprintf("#!/bin/sh\n%s\necho keelson-%s version %s\n", comment, daemon, version)
	must(t, errors.Join(os.WriteFile(file+".new", []byte(text), 0o755), os.Rename(file+".new", file)))
}

func (b *upgradeBed) upgrade(t *testing.T) error {
	return b.opened(t).upgrade(t.Context(), b.options, b.around, 0)
}

func (b *upgradeBed) mustUpgrade(t *testing.T) {
	t.Helper()
	if err := b.upgrade(t); err != nil {
		t.Fatalf("%v\n%s", err, b.out.String())
	}
}

// runs checks which version is installed and runs.
func (b *upgradeBed) runs(t *testing.T, want string, daemons ...string) {
	t.Helper()
	for _, daemon := range daemons {
		process := b.running["keelson-"+daemon+".service"]
		if process == nil {
			t.Errorf("%s does not run", daemon)
			continue
		}
		for where, file := range map[string]string{
			"installed": filepath.Join(b.bed.options.Programs, "keelson-"+daemon),
			"running":   filepath.Join(b.proc, fmt.Sprint(process.pid), "exe"),
		} {
			if content, err := os.ReadFile(file); err != nil || !strings.HasSuffix(string(content), want+"\n") {
				t.Errorf("%s that is %s is %q, %v, want %s", daemon, where, content, err, want)
			}
		}
	}
}

// restarts are the calls that restart these daemons, one after the other.
func restarts(daemons ...string) string {
	var calls []string
	for _, daemon := range daemons {
		calls = append(calls, "restart keelson-"+daemon+".service")
	}
	return strings.Join(calls, "\n")
}

func (b *upgradeBed) expectCalls(t *testing.T, want string) {
	t.Helper()
	if got := strings.Join(b.calls, "\n"); got != want {
		t.Errorf("systemctl was told\n%s\nwant\n%s", got, want)
	}
}

// The daemons are replaced one after the other, the apiserver first; nothing is left to do for another run nor for keel
// init. They go back in the other order.
func TestUpgrade(t *testing.T) {
	b := newUpgradeBed(t)
	runtime := b.running["keelson-containerd.service"].pid
	b.mustUpgrade(t)
	b.runs(t, after, upgrade.Daemons...)
	b.expectCalls(t, restarts(upgrade.Daemons...))
	if b.around.reported != after {
		t.Errorf("it waited for the node with an agent of %q", b.around.reported)
	}
	if said := b.out.String(); !strings.Contains(said, "apiserver             aaaa111 -> bbbb222\n") ||
		!strings.Contains(said, "the API is away for some seconds") ||
		!strings.Contains(said, "==> apiserver: ending aaaa111 in good order, and starting bbbb222 ... ") {
		t.Errorf("it said\n%s", said)
	}
	b.mustUpgrade(t)
	b.expectCalls(t, "")
	if said := b.out.String(); !strings.Contains(said, "nodeagent             bbbb222, as it is wanted\n") {
		t.Errorf("a second run said\n%s", said)
	}
	b.bed.mustInit(t)
	b.expectCalls(t, "")

	b.options.From, b.options.Back = "", true
	reverse := slices.Clone(upgrade.Daemons)
	slices.Reverse(reverse)
	b.mustUpgrade(t)
	b.runs(t, before, upgrade.Daemons...)
	b.expectCalls(t, restarts(reverse...))
	if b.running["keelson-containerd.service"].pid != runtime {
		t.Error("the runtime was started anew")
	}
	left, err := filepath.Glob(filepath.Join(b.bed.options.Programs, ".keelson-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	kept, err := filepath.Glob(filepath.Join(b.layout.Upgrade(), "keelson-*"))
	if err != nil || len(kept) != len(upgrade.Daemons) {
		t.Errorf("kept are %v, %v", kept, err)
	}
}

// One daemon is replaced alone, and goes back alone.
func TestUpgradeOneDaemon(t *testing.T) {
	b := newUpgradeBed(t)
	b.options.Asked = []string{plan.APIServer}
	b.mustUpgrade(t)
	b.runs(t, after, plan.APIServer)
	b.runs(t, before, upgrade.Daemons[1:]...)
	b.options = Upgrading{Back: true, Within: time.Minute}
	b.mustUpgrade(t) // the others have nothing to go back to
	b.runs(t, before, upgrade.Daemons...)
	b.expectCalls(t, restarts(plan.APIServer))
	b.options.Asked = []string{upgrade.Nodeagent}
	if err := b.upgrade(t); err == nil || !strings.Contains(err.Error(), "nothing from before is kept in "+
		b.layout.Upgrade()) {
		t.Errorf("the nodeagent goes back: %v", err)
	}
}

// A package has replaced the programs: what runs is kept, and goes back in their place.
func TestUpgradeAfterAPackage(t *testing.T) {
	b := newUpgradeBed(t)
	b.install(t, b.bed.options.Programs, after, "")
	b.options.From, b.options.Own = "", b.bed.options.Programs
	b.mustUpgrade(t)
	b.runs(t, after, upgrade.Daemons...)
	b.options.Back = true
	b.mustUpgrade(t)
	b.runs(t, before, upgrade.Daemons...)
}

// A daemon that does not become ready is taken back, and those after it are left as they are.
func TestUpgradeIsTakenBack(t *testing.T) {
	for name, row := range map[string]struct {
		comment, daemon, problem string
	}{
		"it ends":              {brokenProgram, plan.Scheduler, "has ended 5 times without getting ready"},
		"it cannot be started": {impossibleProgram, plan.APIServer, "status=203/EXEC"},
	} {
		b := newUpgradeBed(t)
		b.put(t, b.options.From, row.daemon, after, row.comment)
		err := b.upgrade(t)
		var taken *TakenBackError
		if !errors.As(err, &taken) || taken.Daemon != row.daemon || taken.From != before || taken.To != after ||
			!strings.Contains(taken.Problem, row.problem) {
			t.Errorf("%s: %v", name, err)
		}
		at := slices.Index(upgrade.Daemons, row.daemon)
		b.runs(t, after, upgrade.Daemons[:at]...)
		b.runs(t, before, upgrade.Daemons[at:]...)
		b.expectCalls(t, restarts(append(slices.Clone(upgrade.Daemons[:at+1]), row.daemon)...))
		if b.around.reported != "" {
			t.Errorf("%s: the nodeagent was begun with", name)
		}
	}
}

// A node that does not become ready counts as its agent.
func TestUpgradeOfANodeThatIsNotReady(t *testing.T) {
	b := newUpgradeBed(t)
	b.options.Asked = []string{upgrade.Nodeagent}
	b.around.nodeErr = errors.New("the node vm is not ready in time")
	if err := b.upgrade(t); err == nil || !strings.Contains(err.Error(), "neither bbbb222 nor aaaa111, which is there "+
		"again, becomes ready: the node vm") {
		t.Errorf("got %v", err)
	}
	b.around.nodeErr = nil
	var taken *TakenBackError
	if err := b.upgrade(t); !errors.As(err, &taken) { // which goes on to wait
		t.Errorf("got %v", err)
	}
	b.runs(t, before, upgrade.Nodeagent)
	b.mustUpgrade(t)
	b.runs(t, after, upgrade.Nodeagent)
}

// deadlyOutput ends keel when it prints the heading of a step.
type deadlyOutput struct {
	bytes.Buffer
	left int
}

func (d *deadlyOutput) Write(text []byte) (int, error) {
	if bytes.HasPrefix(text, []byte("==> ")) {
		if d.left--; d.left < 0 {
			panic(errCut)
		}
	}
	return d.Buffer.Write(text)
}

// killedUpgrade ends keel, as SIGKILL does, before a step, counted from 0, and reports whether it got there.
func (b *upgradeBed) killedUpgrade(t *testing.T, step int) (killed bool, err error) {
	t.Helper()
	m := b.opened(t)
	m.Out = &deadlyOutput{left: step}
	defer func() {
		if found := recover(); found != nil && found != any(errCut) {
			panic(found)
		} else if found != nil {
			killed = true
		}
	}()
	return false, m.upgrade(t.Context(), b.options, b.around, 0)
}

// Keel is ended before each step of an upgrade, and the machine starts anew or not: the next run comes to the end that
// an undisturbed one comes to.
func TestUpgradeIsKilledAtEachStep(t *testing.T) {
	b := newUpgradeBed(t)
	b.options.Asked = []string{plan.APIServer}
	for _, comment := range []string{"", impossibleProgram} {
		for _, reboot := range []bool{false, true} {
			for step := 0; ; step++ {
				// What runs now is what there was before.
				from, to := before, fmt.Sprintf("%s%d", after, step)
				b.put(t, b.bed.options.Programs, plan.APIServer, from, "")
				must(t, os.RemoveAll(b.layout.Upgrade()))
				must(t, b.units().Restart(t.Context(), "keelson-apiserver.service"))
				b.put(t, b.options.From, plan.APIServer, to, comment)
				killed, err := b.killedUpgrade(t, step)
				if reboot {
					_ = b.units().Restart(t.Context(), "keelson-apiserver.service") // it may be one that cannot
				}
				name := fmt.Sprintf("%q, a reboot %t, killed before step %d", comment, reboot, step)
				if killed {
					err = b.upgrade(t)
				}
				want := to
				if comment != "" {
					want = from
				}
				taken := new(TakenBackError)
				if errors.As(err, &taken) != (comment != "") || comment == "" && err != nil {
					t.Errorf("%s: %v", name, err)
				}
				b.runs(t, want, plan.APIServer)
				if t.Failed() {
					t.Fatal(name)
				}
				if !killed {
					if step < 4 {
						t.Errorf("%s: there are no more steps", name)
					}
					break
				}
			}
		}
	}
}

// Systemctl is where keel may be cut off while the daemon is replaced.
func TestUpgradeIsKilledAtSystemctl(t *testing.T) {
	for _, done := range []bool{false, true} {
		b := newUpgradeBed(t)
		b.options.Asked = []string{plan.APIServer}
		b.cut, b.after, b.killed = 1, done, true
		killed, err := b.killedUpgrade(t, 100)
		b.cut, b.after, b.killed = 0, false, false
		if !killed {
			t.Fatalf("it was not killed: %v", err)
		}
		b.mustUpgrade(t)
		b.runs(t, after, plan.APIServer)
		if done {
			b.expectCalls(t, "")
		}
	}
}

// An upgrade that was cut off is taken back by --rollback, and another version may take its place.
func TestUpgradeChangesItsMind(t *testing.T) {
	const steps = 6
	for step := range steps {
		b := newUpgradeBed(t)
		b.options.Asked = []string{plan.APIServer}
		if killed, err := b.killedUpgrade(t, step); !killed {
			if step < 4 {
				t.Errorf("there are only %d steps: %v", step, err)
			}
			break
		}
		b.put(t, b.options.From, plan.APIServer, "cccc333", "")
		b.mustUpgrade(t)
		b.runs(t, "cccc333", plan.APIServer)
		b.options = Upgrading{Asked: b.options.Asked, Back: true, Within: time.Minute}
		b.mustUpgrade(t)
		b.runs(t, before, plan.APIServer)
	}
	for step := 2; step < steps; step++ { // from when it is recorded
		b := newUpgradeBed(t)
		b.options.Asked = []string{plan.APIServer}
		if killed, _ := b.killedUpgrade(t, step); !killed {
			break
		}
		b.options = Upgrading{Asked: b.options.Asked, Back: true, Within: time.Minute}
		b.mustUpgrade(t)
		b.runs(t, before, plan.APIServer)
	}
}

// What is wrong is said in a sentence, and nothing is changed.
func TestUpgradeRefuses(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*testing.T, *upgradeBed)
		want   string
	}{
		"a mesh of keel up": {func(t *testing.T, b *upgradeBed) {
			b.record(t, func(s *state.State) { s.Units = false })
		}, "holds a mesh of keel up, which keel down and keel up bring up to date"},
		"no units": {func(t *testing.T, b *upgradeBed) {
			for _, name := range plan.UnitNames() {
				must(t, os.Remove(filepath.Join(b.dir, name)))
			}
		}, "this machine has no units of the mesh: keel init makes them"},
		"another's unit": {func(t *testing.T, b *upgradeBed) {
			b.options.Asked = []string{plan.PodGC}
			must(t, os.WriteFile(filepath.Join(b.dir, "keelson-podgc.service"), []byte("# hello\n"), 0o644))
		}, "podgc: this machine has no unit for it: keel init makes one"},
		"no folder": {func(_ *testing.T, b *upgradeBed) { b.options.From = "/nosuch" },
			"--from: stat /nosuch: no such"},
		"no program": {func(t *testing.T, b *upgradeBed) {
			must(t, os.Remove(filepath.Join(b.options.From, "keelson-podgc")))
		}, "podgc: there is no "},
		"another program": {func(t *testing.T, b *upgradeBed) {
			must(t, os.Rename(filepath.Join(b.options.From, "keelson-podgc"),
				filepath.Join(b.options.From, "keelson-scheduler")))
			b.put(t, b.options.From, plan.PodGC, after, "")
		}, `keelson-scheduler is no keelson-scheduler: asked for its version it says "keelson-podgc version bbbb222"`},
		"a program that does not run": {func(t *testing.T, b *upgradeBed) {
			b.put(t, b.options.From, plan.PodGC, after, "exit 1")
		}, "keelson-podgc for its version: exit status 1"},
		"an RPM": {func(t *testing.T, b *upgradeBed) {
			b.options.From += ".rpm"
			must(t, os.WriteFile(b.options.From, nil, 0o600))
		}, "install it (dnf install), and run keel upgrade without --from"},
		"the mesh does not answer": {func(_ *testing.T, b *upgradeBed) { b.around.err = errors.New("no route") },
			"whether the mesh is well cannot be told: no route; --force goes on all the same"},
		"another machine is missing": {func(_ *testing.T, b *upgradeBed) {
			b.around.found.members = []upgrade.Member{{Machine: "vm", Counts: true, Self: true},
				{Machine: "b", Counts: true, Fault: "no route"}}
		}, "without this machine the store had no majority, since no apiserver answers as ready on b (no route)"},
		"nothing to go back to": {func(_ *testing.T, b *upgradeBed) { b.options.From, b.options.Back = "", true },
			"--rollback: nothing from before is kept in "},
	} {
		b := newUpgradeBed(t)
		row.change(t, b)
		running, there := b.pids(), tree(t, b.bed.options.Programs)
		b.calls = nil
		err := b.upgrade(t)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v\nwant %s", name, err, row.want)
		}
		if b.pids() != running || tree(t, b.bed.options.Programs) != there || len(b.calls) > 0 {
			t.Errorf("%s: it has changed something, and told systemctl %v", name, b.calls)
		}
	}
}

// By force it goes on however the mesh is, and without it once there is something to bring to its end.
func TestUpgradeByForce(t *testing.T) {
	b := newUpgradeBed(t)
	b.around.err = errors.New("no route")
	b.options.Force = true
	b.options.Asked = []string{plan.APIServer}
	if killed, err := b.killedUpgrade(t, 4); !killed {
		t.Fatalf("it was not killed: %v", err)
	}
	b.options.Force = false
	b.mustUpgrade(t)
	b.runs(t, after, plan.APIServer)
}

func TestUpgradeDryRun(t *testing.T) {
	b := newUpgradeBed(t)
	b.options.DryRun = true
	there := tree(t, b.layout.Dir) + tree(t, b.bed.options.Programs)
	b.mustUpgrade(t)
	b.expectCalls(t, "")
	if said := b.out.String(); !strings.Contains(said, "apiserver             aaaa111 -> bbbb222\n") ||
		!strings.Contains(said, "Nothing was changed.") || strings.Contains(said, "==>") {
		t.Errorf("it said\n%s", said)
	}
	if now := tree(t, b.layout.Dir) + tree(t, b.bed.options.Programs); now != there {
		t.Error("files were changed")
	}
}
