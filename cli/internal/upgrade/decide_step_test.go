package upgrade

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

func build(name string) Build {
	if name == "" {
		return Build{}
	}
	return Build{Version: "v" + name, Sum: name}
}

// record is short for a Record.
func record(phase Phase, from, to string) Record {
	return Record{Phase: phase, From: build(from), To: build(to)}
}

// Each state that a step, or the end of keel or of the machine during one, leaves behind has one next step.
func TestDecide(t *testing.T) {
	kept := []string{"old"}
	for name, row := range map[string]struct {
		in   Input
		want Step
	}{
		"it runs already": {Input{Installed: build("new"), Running: build("new")}, Step{Action: Rest}},
		"it runs, and was not moved in": {Input{Installed: build("old"), Running: build("new")},
			Step{Action: Keep, Build: build("old")}},
		"nothing is done yet": {Input{Installed: build("old"), Running: build("old")},
			Step{Action: Keep, Build: build("old")}},
		"a package was installed": {Input{Installed: build("new"), Running: build("old")},
			Step{Action: Keep, Build: build("old")}},
		"two packages were installed": {Input{Installed: build("between"), Running: build("old")},
			Step{Action: Keep, Build: build("old")}},
		"the daemon does not run": {Input{Installed: build("old")}, Step{Action: Keep, Build: build("old")}},
		"the daemon does not run, and a package was installed": {Input{Installed: build("new")},
			Step{Action: Write, Record: record(Going, "", "new")}},
		"kept": {Input{Installed: build("old"), Running: build("old"), Kept: kept},
			Step{Action: Stage, Build: build("new")}},
		"kept, of a package": {Input{Installed: build("new"), Running: build("old"), Kept: kept},
			Step{Action: Write, Record: record(Going, "old", "new")}},
		"kept, with another one beside": {Input{Installed: build("old"), Running: build("old"), Kept: kept,
			Staged: []string{"other"}}, Step{Action: Stage, Build: build("new")}},
		"staged": {Input{Installed: build("old"), Running: build("old"), Kept: kept, Staged: []string{"new"}},
			Step{Action: Write, Record: record(Going, "old", "new")}},
		"recorded": {Input{Record: record(Going, "old", "new"), Installed: build("old"), Running: build("old"),
			Kept: kept, Staged: []string{"new"}}, Step{Action: Switch, Build: build("new")}},
		"recorded, what was staged is lost": {Input{Record: record(Going, "old", "new"), Installed: build("old"),
			Running: build("old"), Kept: kept}, Step{Action: Stage, Build: build("new")}},
		"switched": {Input{Record: record(Going, "old", "new"), Installed: build("new"), Running: build("old"),
			Kept: kept}, Step{Action: Restart, Build: build("new")}},
		"switched, and the daemon has ended": {Input{Record: record(Going, "old", "new"), Installed: build("new"),
			Kept: kept}, Step{Action: Restart, Build: build("new")}},
		"restarted": {Input{Record: record(Going, "old", "new"), Installed: build("new"), Running: build("new"),
			Kept: kept, Restarted: true}, Step{Action: Await, Build: build("new")}},
		"restarted, and ends at once": {Input{Record: record(Going, "old", "new"), Installed: build("new"), Kept: kept,
			Restarted: true}, Step{Action: Await, Build: build("new")}},
		"restarted by an earlier run": {Input{Record: record(Going, "old", "new"), Installed: build("new"),
			Running: build("new"), Kept: kept}, Step{Action: Await, Build: build("new")}},
		"ready": {Input{Record: record(Going, "old", "new"), Installed: build("new"), Running: build("new"), Kept: kept,
			Restarted: true, Readiness: Ready}, Step{Action: Write, Record: record(Done, "old", "new")}},
		"not ready": {Input{Record: record(Going, "old", "new"), Installed: build("new"), Kept: kept, Restarted: true,
			Readiness: Unready, Problem: "it ends"}, Step{Action: Write, Record: Record{Phase: Returning,
			From: build("old"), To: build("new"), Problem: "it ends"}}},
		"not ready, and nothing to go back to": {Input{Record: record(Going, "", "new"), Installed: build("new"),
			Restarted: true, Readiness: Unready}, Step{Action: Fail}},
		"on its way back": {Input{Record: record(Returning, "old", "new"), Installed: build("new"), Kept: kept},
			Step{Action: Stage, Build: build("old")}},
		"on its way back, staged": {Input{Record: record(Returning, "old", "new"), Installed: build("new"), Kept: kept,
			Staged: []string{"old"}}, Step{Action: Switch, Build: build("old")}},
		"on its way back, switched": {Input{Record: record(Returning, "old", "new"), Installed: build("old"),
			Running: build("new"), Kept: kept}, Step{Action: Restart, Build: build("old")}},
		"on its way back, never restarted": {Input{Record: record(Returning, "old", "new"), Installed: build("old"),
			Running: build("old"), Kept: kept}, Step{Action: Await, Build: build("old")}},
		"back": {Input{Record: record(Returning, "old", "new"), Installed: build("old"), Running: build("old"),
			Kept: kept, Restarted: true, Readiness: Ready},
			Step{Action: Write, Record: record(Returned, "old", "new")}},
		"back, and not ready either": {Input{Record: record(Returning, "old", "new"), Installed: build("old"),
			Kept: kept, Restarted: true, Readiness: Unready}, Step{Action: Fail}},
		"after one that was taken back": {Input{Record: record(Returned, "old", "new"), Installed: build("old"),
			Running: build("old"), Kept: kept}, Step{Action: Stage, Build: build("new")}},
		"after an earlier one": {Input{Record: record(Done, "older", "old"), Installed: build("old"),
			Running: build("old"), Kept: []string{"older"}}, Step{Action: Keep, Build: build("old")}},
		"another one was on its way": {Input{Record: record(Going, "old", "bad"), Installed: build("bad"), Kept: kept},
			Step{Action: Stage, Build: build("new")}},
		"another one was on its way, staged": {Input{Record: record(Going, "old", "bad"), Installed: build("bad"),
			Kept: kept, Staged: []string{"new"}}, Step{Action: Write, Record: record(Going, "old", "new")}},
		"the one of before is wanted again": {Input{Record: record(Going, "new", "bad"), Installed: build("bad"),
			Running: build("bad"), Kept: []string{"new"}}, Step{Action: Write, Record: Record{Phase: Returning,
			From: build("new"), To: build("bad"), Problem: "it was asked for"}}},
		"back to the one of before, as asked": {Input{Record: record(Done, "new", "newer"), Installed: build("newer"),
			Running: build("newer"), Kept: []string{"new"}}, Step{Action: Keep, Build: build("newer")}},
	} {
		row.in.Wanted = build("new")
		if got := Decide(row.in); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

// A plan names the builds between which a daemon goes from where it is now.
func TestEnds(t *testing.T) {
	for name, row := range map[string]struct {
		in       Input
		from, to string
		begun    bool
	}{
		"nothing is begun":        {Input{Installed: build("old"), Running: build("old")}, "old", "new", false},
		"a package was installed": {Input{Installed: build("new"), Running: build("old")}, "old", "new", false},
		"it does not run":         {Input{Installed: build("old")}, "old", "new", false},
		"it is complete": {Input{Record: record(Done, "older", "old"), Running: build("old")},
			"old", "new", false},
		"it is under way": {Input{Record: record(Going, "old", "new"), Running: build("new")},
			"old", "new", true},
		"another one is under way": {Input{Record: record(Going, "old", "bad"), Running: build("bad")},
			"old", "new", false},
		"it is not wanted": {Input{Record: record(Going, "new", "bad"), Running: build("bad")},
			"bad", "new", true},
		"it is on its way back": {Input{Record: record(Returning, "old", "bad")}, "bad", "old", true},
	} {
		row.in.Wanted = build("new")
		if from, to := row.in.Ends(); from != build(row.from) || to != build(row.to) || row.in.Begun() != row.begun {
			t.Errorf("%s: from %v to %v, begun %t", name, from, to, row.in.Begun())
		}
	}
}

// world is a machine on which a daemon is replaced.
type world struct {
	record             Record
	installed, running string
	kept, staged       map[string]bool
	// outside is the program that the user has given.
	outside string
	// bad are the builds that end when they are started, hanging those that never become ready.
	bad, hanging map[string]bool
}

func (w world) clone() *world {
	w.kept, w.staged = maps.Clone(w.kept), maps.Clone(w.staged)
	return &w
}

// start runs what is installed, as a restart of the daemon or of the machine does.
func (w *world) start() {
	w.running = w.installed
	if w.bad[w.installed] {
		w.running = ""
	}
}

// run carries steps out, at most limit, and returns how many; ended is set if it came to an end by itself.
func (w *world) run(wanted string, limit int) (steps int, ended bool, fault error) {
	var local Input
	for ; steps < limit; steps++ {
		in := local
		in.Record, in.Installed, in.Running, in.Wanted = w.record, build(w.installed), build(w.running), build(wanted)
		in.Kept, in.Staged = slices.Collect(maps.Keys(w.kept)), slices.Collect(maps.Keys(w.staged))
		step := Decide(in)
		switch step.Action {
		case Rest, Fail:
			return steps, true, nil
		case Write:
			w.record, local = step.Record, Input{}
			if step.Record.Ended() {
				w.kept, w.staged = map[string]bool{step.Record.From.Sum: true}, map[string]bool{}
				return steps + 1, true, w.check()
			}
		case Await:
			local.Readiness = Ready
			if w.bad[w.installed] || w.hanging[w.installed] {
				local.Readiness, local.Problem = Unready, "it is not ready"
			}
		case Restart:
			w.start()
			local.Restarted = true
		default:
			fault = w.move(step)
		}
		if fault == nil {
			fault = w.check()
		}
		if fault != nil {
			return steps, false, fmt.Errorf("after %+v: %w", step, fault)
		}
	}
	return steps, false, nil
}

// move carries out a step with files.
func (w *world) move(step Step) error {
	sum := step.Build.Sum
	switch step.Action {
	case Keep:
		if sum != w.installed && sum != w.running {
			return fmt.Errorf("%s is nowhere to be kept from", sum)
		}
		w.kept[sum] = true
	case Stage:
		if sum != w.outside && !w.kept[sum] {
			return fmt.Errorf("%s is nowhere to be staged from", sum)
		}
		w.staged[sum] = true
	case Switch:
		if !w.staged[sum] {
			return fmt.Errorf("%s is not staged", sum)
		}
		w.installed = sum
		delete(w.staged, sum)
	}
	return nil
}

// check sees that there is always something to go back to.
func (w *world) check() error {
	if from := w.record.From.Sum; w.record.Phase != Idle && from != "" && !w.kept[from] {
		return fmt.Errorf("%+v has nothing to go back to", w.record)
	}
	return nil
}

// begins are the machines on which a replacement by the build new begins.
var begins = map[string]world{
	"programs of keel's own":      {installed: "old", running: "old"},
	"after an earlier one":        {installed: "old", running: "old", record: record(Done, "older", "old")},
	"after one taken back":        {installed: "old", running: "old", record: record(Returned, "old", "worse")},
	"an installed package":        {installed: "new", running: "old"},
	"another installed package":   {installed: "between", running: "old"},
	"a daemon that does not run":  {installed: "old"},
	"one that waits to be undone": {installed: "worse", running: "", record: record(Going, "old", "worse")},
}

// Keel may end before and after any step, and the machine too: another run comes to the same end as one that nobody
// disturbs, where the new build runs or, if it does not become ready, the old one does.
func TestCutOffAtAnyStep(t *testing.T) {
	for name, begin := range begins {
		for _, fate := range []string{"good", "bad", "hanging"} {
			begin.outside, begin.kept, begin.staged = "new", map[string]bool{}, map[string]bool{}
			begin.bad = map[string]bool{"worse": true, "new": fate == "bad"}
			begin.hanging = map[string]bool{"new": fate == "hanging"}
			if from := begin.record.From.Sum; from != "" {
				begin.kept[from] = true
			}
			for cut := 0; ; cut++ {
				done := false
				for _, after := range []string{"keel ends", "the daemon ends", "the machine starts anew"} {
					w := begin.clone()
					_, ended, fault := w.run("new", cut)
					if fault != nil {
						t.Fatalf("%s, %s, cut off at %d: %v", name, fate, cut, fault)
					}
					done = ended
					switch after {
					case "the daemon ends": // and is started by who keeps it running
						w.start()
					case "the machine starts anew":
						w.start()
					}
					what := fmt.Sprintf("%s, %s, cut off at %d, then %s", name, fate, cut, after)
					w.comesToItsEnd(t, what, fate == "good")
				}
				if done {
					break
				}
				if cut > 30 {
					t.Fatalf("%s, %s: it has no end", name, fate)
				}
			}
		}
	}
}

// comesToItsEnd runs keel again until nothing is left to do: at most twice, since a run that takes back what another
// one has begun does no more.
func (w *world) comesToItsEnd(t *testing.T, name string, good bool) {
	t.Helper()
	old := w.before()
	for range 2 {
		if _, ended, fault := w.run("new", 30); !ended || fault != nil {
			t.Errorf("%s: it does not end: %v, %+v", name, fault, w)
			return
		}
		if w.record.Phase == Done {
			break
		}
	}
	want := record(Done, old, "new")
	if !good {
		want = Record{Phase: Returned, From: build(old), To: build("new"), Problem: "it is not ready"}
	}
	if runs := map[bool]string{true: "new", false: old}[good]; old != "" &&
		(w.installed != runs || w.running != runs || w.record != want) {
		t.Errorf("%s: installed is %s, %s runs, and recorded is %+v", name, w.installed, w.running, w.record)
	}
}

// before is the build that can be gone back to; none where a package has replaced it and it runs no more.
func (w *world) before() string {
	if w.record.Phase == Going || w.record.Phase == Returning || w.installed == "new" && w.record.To.Sum == "new" {
		return w.record.From.Sum
	}
	in := Input{Installed: build(w.installed), Running: build(w.running), Wanted: build("new")}
	return in.good().Sum
}

// A replacement that is complete can be taken back, again and again, and at any step of that keel may end.
func TestBackAndForth(t *testing.T) {
	w := &world{installed: "old", running: "old", outside: "new", kept: map[string]bool{}, staged: map[string]bool{}}
	if _, _, fault := w.run("new", 30); fault != nil || w.running != "new" {
		t.Fatalf("%v: %+v", fault, w)
	}
	w.outside = "" // what was kept is enough
	for range 3 {
		to := w.record.From.Sum
		for cut := 0; ; cut++ {
			half := w.clone()
			_, ended, fault := half.run(to, cut)
			if fault == nil {
				_, _, fault = half.run(to, 30)
			}
			if fault != nil || half.running != to || half.record.Phase != Done {
				t.Errorf("cut off at %d of the way to %s: %v, %+v", cut, to, fault, half)
			}
			if ended {
				w = half
				break
			}
		}
	}
	if w.running != "old" || w.record != record(Done, "new", "old") {
		t.Errorf("after three turns there is %+v", w)
	}
}
