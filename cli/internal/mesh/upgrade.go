package mesh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"keelson.dev/cli/internal/programs"
	"keelson.dev/cli/internal/state"
	"keelson.dev/cli/internal/upgrade"
)

// Upgrading holds the arguments of `keel upgrade`.
type Upgrading struct {
	// Asked are the daemons to replace, as users name them; none are all of this machine.
	Asked []string
	// From is the folder or the package that the user has given; empty for the programs in Own, keel's own folder.
	From, Own string
	// Within is how long a new daemon may take to become ready.
	Within time.Duration
	// Back takes the daemons back to what ran before, Force replaces them however the mesh is, and DryRun changes
	// nothing.
	Back, Force, DryRun bool
}

// steadyFor is how long a new daemon has to go on after it has become ready.
const steadyFor = 3 * time.Second

// upgrading is a run of keel upgrade.
type upgrading struct {
	*Mesh
	Upgrading
	around  surroundings
	daemons []*replaceable
	// sums and versions are those of the programs that were looked at.
	sums     programs.Sums
	versions map[string]versionAnswer
	steady   time.Duration
}

// surroundings are what an upgrade asks the mesh about.
type surroundings interface {
	// survey returns what the mesh runs and whether it can do without this machine's apiserver. It returns what it
	// knows together with an error.
	survey(ctx context.Context) (survey, error)
	// awaitNode waits until the agent of that version has reported the machine's node as ready.
	awaitNode(ctx context.Context, version string) error
}

// survey is what a mesh says of itself.
type survey struct {
	fleet   upgrade.Fleet
	members []upgrade.Member
}

// Upgrade replaces daemons of this machine by those of another version, one after the other, and takes one back that
// does not become ready. A run that was cut off is completed by the next one.
func Upgrade(ctx context.Context, m *Mesh, options Upgrading) error {
	return m.upgrade(ctx, options, &apiSurroundings{m}, steadyFor)
}

func (m *Mesh) upgrade(ctx context.Context, options Upgrading, around surroundings, steady time.Duration) error {
	if os.Geteuid() != 0 {
		return errors.New("root is needed to replace programs: run keel as root")
	}
	if !m.State.Units {
		return fmt.Errorf("--data-dir: %s holds a mesh of keel up, which keel down and keel up bring up to date",
			m.Layout.Dir)
	}
	unlock, err := state.Open(m.Layout)
	if err != nil {
		return err
	}
	defer unlock()
	if m.State, err = state.Load(m.Layout); err != nil {
		return err
	}
	u := &upgrading{Mesh: m, Upgrading: options, around: around, sums: programs.Sums{},
		versions: map[string]versionAnswer{}, steady: steady}
	err = u.run(ctx)
	return errors.Join(err, os.RemoveAll(u.unpacked()))
}

func (u *upgrading) run(ctx context.Context) error {
	if err := u.find(ctx); err != nil {
		return err
	}
	p, err := u.plan(ctx)
	if err != nil {
		return err
	}
	if len(p.Problems) > 0 {
		return &UnfitError{Problems: p.Problems}
	}
	u.sayPlan(p)
	if u.DryRun {
		u.say("Nothing was changed.")
		return nil
	}
	for _, change := range p.Changes {
		if err := u.replace(ctx, u.daemon(change.Daemon)); err != nil {
			return err
		}
	}
	u.sayNext(ctx, p)
	return nil
}

// daemon returns the daemon of that name, which is there.
func (u *upgrading) daemon(name string) *replaceable {
	return u.daemons[slices.IndexFunc(u.daemons, func(d *replaceable) bool { return d.name == name })]
}

// plan asks the mesh, and decides what to do.
func (u *upgrading) plan(ctx context.Context) (upgrade.Plan, error) {
	in := upgrade.PlanInput{Asked: u.Asked, Node: u.State.Nodes[0].Name, Back: u.Back, Force: u.Force}
	source, err := u.source(ctx)
	if err != nil {
		return upgrade.Plan{}, err
	}
	changes := false
	for _, d := range u.daemons {
		candidate, err := u.candidate(ctx, d, source)
		if err != nil {
			return upgrade.Plan{}, err
		}
		if candidate == nil {
			continue
		}
		in.Candidates = append(in.Candidates, *candidate)
		changes = changes || !candidate.Rests
	}
	if len(in.Candidates) == 0 {
		return upgrade.Plan{}, fmt.Errorf("--rollback: nothing from before is kept in %s", u.Layout.Upgrade())
	}
	if changes {
		found, err := u.around.survey(ctx)
		in.Fleet, in.Members = found.fleet, found.members
		if err != nil {
			in.Fault = fmt.Sprintf("whether the mesh is well cannot be told: %v", err)
		}
	}
	p := upgrade.DecidePlan(in)
	p.Problems = append(p.Problems, u.placeProblems(p)...)
	return p, ctx.Err()
}

// sayPlan prints what is going to be done.
func (u *upgrading) sayPlan(p upgrade.Plan) {
	for _, change := range p.Resting {
		u.say("    %-20s  %s, as it is wanted", change.Daemon, change.To)
	}
	for _, change := range p.Changes {
		u.say("    %-20s  %s -> %s", change.Daemon, change.From, change.To)
	}
	for _, text := range p.Later {
		u.say("    later: %s", text)
	}
	if len(p.Changes) == 0 {
		return
	}
	for _, note := range p.Notes {
		u.say("    %s", note)
	}
}

// sayNext prints where to go on.
func (u *upgrading) sayNext(ctx context.Context, p upgrade.Plan) {
	if u.State.Worker() {
		u.say("Next: keel upgrade on a machine of which kubectl get nodes shows another version. keel join here " +
			"starts anew what is\nleft, such as containerd.")
		return
	}
	var found survey
	within, cancel := context.WithTimeout(ctx, surveyLimit)
	defer cancel()
	// An apiserver that has just been started may not be among the others yet.
	if err := until(within, func() (err error) { found, err = u.around.survey(within); return err }); err != nil {
		u.say("Which machine is next cannot be told: %v", err)
		return
	}
	next, complete := upgrade.NextMachine(found.fleet, *found.fleet.Own)
	u.say("%s", next)
	switch {
	case len(p.Later) > 0:
		u.say("Once no apiserver is older, keel upgrade again here.")
	case complete:
		u.say("%s here, and keel join on every other machine, starts anew what is left, such as containerd.", u.Maker())
	}
}

// packageFolder is where the packages of a distribution have the programs.
const packageFolder = "/usr/lib/keelson/bin"

// sayPackage tells that the package manager does not know what was done to one of its files.
func (u *upgrading) sayPackage(d *replaceable) {
	if d.folder() == packageFolder {
		u.say("    %s is not the package's any more: install the package of the version that runs now", d.unit.Path)
	}
}

// names returns the names of the programs of all daemons of this machine.
func (u *upgrading) names() []string {
	var names []string
	for _, d := range u.daemons {
		names = append(names, d.program())
	}
	return names
}

// askedFor reports whether a daemon is to be looked at.
func (u *upgrading) askedFor(name string) bool {
	return len(u.Asked) == 0 || slices.Contains(u.Asked, name)
}

// missing returns the error that the machine does not run a daemon that was asked for.
func (u *upgrading) missing(name string) error {
	if u.State.Worker() {
		return fmt.Errorf("%s: this machine is a worker, and runs a nodeagent alone: keel upgrade %s is for the "+
			"machines of the control plane", name, name)
	}
	return fmt.Errorf("%s: this machine has no unit for it: %s makes one", name, u.Maker())
}

// indent makes lines of a log distinct from keel's own.
func indent(lines []string) string { return "      " + strings.Join(lines, "\n      ") }
