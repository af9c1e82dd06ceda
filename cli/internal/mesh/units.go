package mesh

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/unit"
	"keelson.dev/kit/daemon"
)

// unitInterval is short compared with the start of a daemon, and long compared with a query to systemd.
const unitInterval = 500 * time.Millisecond

// maxRestarts is how often a unit may be restarted before keel gives up on it.
const maxRestarts = 5

// unitStates returns the states with which the plan compares units.
func (m *Mesh) unitStates(ctx context.Context, units []plan.Unit) (map[string]plan.UnitState, error) {
	var names []string
	for _, unit := range units {
		names = append(names, unit.Name)
	}
	found, err := m.units().States(ctx, names)
	if err != nil {
		return nil, err
	}
	states := map[string]plan.UnitState{}
	for _, unit := range units {
		state := found[unit.Name]
		state.Outdated = state.Active && m.units().Replaced(state.PID, unit.Path)
		states[unit.Name] = state.UnitState
	}
	return states, nil
}

// convergeUnits brings the unit files, and systemd's view of them, to the planned state.
func (m *Mesh) convergeUnits(ctx context.Context, units []plan.Unit) error {
	changes, err := m.unitChanges(ctx, units)
	if err != nil {
		return err
	}
	return m.applyChanges(ctx, changes)
}

// unitChanges returns the changes that are needed.
func (m *Mesh) unitChanges(ctx context.Context, units []plan.Unit) (plan.UnitChanges, error) {
	var names []string
	for _, unit := range units {
		names = append(names, unit.Name)
	}
	files, err := m.units().Files(names)
	if err != nil {
		return plan.UnitChanges{}, err
	}
	states, err := m.unitStates(ctx, units)
	if err != nil {
		return plan.UnitChanges{}, err
	}
	return plan.DecideUnitChanges(units, files, states), nil
}

func (m *Mesh) applyChanges(ctx context.Context, changes plan.UnitChanges) error {
	if len(changes.Write) == 0 && !changes.Reload && len(changes.Enable) == 0 {
		return nil
	}
	return m.step(ctx, fmt.Sprintf("writing %d units", len(changes.Write)), func(ctx context.Context) error {
		for _, unit := range changes.Write {
			if err := m.units().Write(unit.Name, unit.Content); err != nil {
				return err
			}
		}
		if changes.Reload {
			if err := m.units().Reload(ctx); err != nil {
				return err
			}
		}
		if len(changes.Enable) == 0 {
			return nil
		}
		return m.units().Enable(ctx, changes.Enable...)
	})
}

// runUnits starts or restarts the units that do not run as planned, and waits until all are ready.
func (m *Mesh) runUnits(ctx context.Context, tier []plan.Unit) error {
	return m.startUnits(ctx, tier, true)
}

// startUnits is runUnits, with or without the wait.
func (m *Mesh) startUnits(ctx context.Context, tier []plan.Unit, wait bool) error {
	states, err := m.unitStates(ctx, tier)
	if err != nil {
		return err
	}
	due := plan.DecideRestarts(tier, states)
	what := fmt.Sprintf("checking %d running units", len(tier))
	if len(due) > 0 {
		what = "starting " + strings.Join(due, ", ")
	}
	return m.step(ctx, what, func(ctx context.Context) error {
		if len(due) > 0 {
			if err := m.units().Restart(ctx, due...); err != nil {
				return err
			}
		}
		if !wait {
			return nil
		}
		return awaitTier(m, tier, func(client *http.Client, unit plan.Unit) error {
			return m.awaitUnit(ctx, client, unit)
		})
	})
}

// awaitUnit waits until the process of a unit is ready.
func (m *Mesh) awaitUnit(ctx context.Context, client *http.Client, unit plan.Unit) error {
	ready := m.readiness(client, unit.Process)
	ticker := time.NewTicker(unitInterval)
	defer ticker.Stop()
	var last error
	for first := -1; ; {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		states, err := m.units().States(ctx, []string{unit.Name})
		if err == nil {
			restarts := states[unit.Name].Restarts
			if first < 0 {
				first = restarts
			}
			if restarts-first >= maxRestarts {
				return fmt.Errorf("%s has ended %d times without getting ready: %s says why", unit.Name,
					restarts-first, m.units().Log(unit.Name))
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready in time: %w; %s says more", unit.Name, last, m.units().Log(unit.Name))
		case <-ticker.C:
		}
	}
}

// awaitNode waits until the API reports the machine's node as ready.
func (m *Mesh) awaitNode(ctx context.Context) error { return m.awaitNodeOf(ctx, "") }

// awaitNodeOf is awaitNode for an agent of a version, or of any: what an earlier one has reported does not count.
func (m *Mesh) awaitNodeOf(ctx context.Context, version string) error {
	client, err := m.Client()
	if err != nil {
		return err
	}
	last := errors.New("it has not registered")
	if err := until(ctx, func() error {
		node, err := client.CoreV1().Nodes().Get(ctx, m.State.Nodes[0].Name, metav1.GetOptions{})
		if err != nil {
			if !apierrors.IsNotFound(err) && ctx.Err() == nil {
				last = err
			}
			return last
		}
		own, says := daemon.OwnVersion(node.Status.NodeInfo.KubeletVersion)
		if version != "" && says && own != daemon.Metadata(version) {
			last = fmt.Errorf("its agent has not reported since that of %s", own)
			return last
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type != corev1.NodeReady {
				continue
			}
			if condition.Status == corev1.ConditionTrue {
				return nil
			}
			last = errors.New(condition.Message)
		}
		return last
	}); err != nil {
		return fmt.Errorf("the node %s is not ready in time: %w; %s says more", m.State.Nodes[0].Name, err,
			m.explainNode())
	}
	return nil
}

// until calls try until it succeeds or ctx ends, and returns the last error from before ctx ended.
func until(ctx context.Context, try func() error) error {
	ticker := time.NewTicker(unitInterval)
	defer ticker.Stop()
	var wrong error
	for {
		err := try()
		if err == nil {
			return nil
		}
		if wrong == nil || ctx.Err() == nil {
			wrong = err
		}
		select {
		case <-ctx.Done():
			return wrong
		case <-ticker.C:
		}
	}
}

// explainNode returns the command that explains the state of the machine's node.
func (m *Mesh) explainNode() string {
	if m.State.Worker() {
		return m.Log(plan.NodeagentProcess(""))
	}
	return "keel explain node " + m.State.Nodes[0].Name
}

// Process describes a process of the mesh, run by keel or as a unit.
type Process struct {
	Name    string
	Alive   bool
	PID     int
	Started time.Time
	// Log is a file, or the command that shows the journal.
	Log string
}

// Processes lists the mesh's processes; none while it is down.
func (m *Mesh) Processes(ctx context.Context) ([]Process, error) {
	var processes []Process
	if !m.State.Units {
		for _, p := range m.State.Processes {
			processes = append(processes, Process{p.Name, p.Alive(), p.PID, p.Started, p.Log})
		}
		return processes, nil
	}
	files, err := m.units().Files(plan.UnitNames())
	if err != nil {
		return nil, err
	}
	states := map[string]unit.State{}
	if len(files) > 0 {
		if states, err = m.units().States(ctx, plan.UnitNames()); err != nil {
			return nil, err
		}
	}
	for _, name := range plan.ProcessNames(m.State.NodeNames()...) {
		unit := plan.UnitName(name)
		if _, there := files[unit]; there {
			state := states[unit]
			processes = append(processes,
				Process{name, state.Active, state.PID, state.Started, m.units().Log(unit)})
		}
	}
	return processes, nil
}

// Has reports whether a process is part of the mesh.
func (m *Mesh) Has(process string) bool {
	if m.State.Units {
		for _, name := range plan.ProcessNames(m.State.NodeNames()...) {
			if name == process {
				return true
			}
		}
		return false
	}
	_, ok := m.State.Find(process)
	return ok
}
