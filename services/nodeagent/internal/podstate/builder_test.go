package podstate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/resize"
	"keelson.dev/services/nodeagent/internal/sizes"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// build makes an input: a Pod that is prepared and has no sandbox, changed by the options.
func build(options ...func(*Input)) Input {
	in := Input{
		Now: now, StartedAt: now.Add(-time.Minute),
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u1"},
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways,
				TerminationGracePeriodSeconds: ptr.To(int64(30))},
		},
		Observed: &observed.Pod{UID: "u1", Namespace: "ns", Name: "web"},
		Memory: Memory{
			Prepared: map[string]bool{"folders": true, "volumes": true}, Released: map[string]bool{},
			RefreshAt: map[string]time.Time{},
			Faults:    map[Key]Fault{}, SandboxesStopped: map[string]bool{}, Hooked: map[string]bool{},
			MustStop: map[string]StopReason{}, Streaks: map[string]uint32{},
			Resize: resize.Actuation{Updated: map[string]sizes.Instance{}, Restarted: map[string]bool{}},
		},
		Probes: map[string]Probe{}, Ops: map[Key]Op{}, Steps: []string{"folders", "volumes"},
	}
	for _, o := range options {
		o(&in)
	}
	in.Observed.Sort()
	return in
}

func container(name string) corev1.Container { return corev1.Container{Name: name, Image: "image:1"} }

func initC(names ...string) func(*Input) {
	return func(in *Input) {
		for _, n := range names {
			in.Pod.Spec.InitContainers = append(in.Pod.Spec.InitContainers, container(n))
		}
	}
}

func sidecar(name string, edit ...func(*corev1.Container)) func(*Input) {
	return func(in *Input) {
		c := container(name)
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		for _, e := range edit {
			e(&c)
		}
		in.Pod.Spec.InitContainers = append(in.Pod.Spec.InitContainers, c)
	}
}

func mainC(name string, edit ...func(*corev1.Container)) func(*Input) {
	return func(in *Input) {
		c := container(name)
		for _, e := range edit {
			e(&c)
		}
		in.Pod.Spec.Containers = append(in.Pod.Spec.Containers, c)
	}
}

func ephemeral(name string) func(*Input) {
	return func(in *Input) {
		in.Pod.Spec.EphemeralContainers = append(in.Pod.Spec.EphemeralContainers,
			corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(container(name))})
	}
}

// restarted gives a container a policy of its own, and a rule that restarts it after the exit codes, if any.
func restarted(policy corev1.ContainerRestartPolicy, codes ...int32) func(*corev1.Container) {
	return func(c *corev1.Container) {
		c.RestartPolicy = &policy
		if len(codes) > 0 {
			c.RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart,
				ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: codes}}}
		}
	}
}

func policy(p corev1.RestartPolicy) func(*Input) {
	return func(in *Input) { in.Pod.Spec.RestartPolicy = p }
}

func sandbox(id string, attempt uint32, ready bool) func(*Input) {
	return func(in *Input) {
		in.Observed.Sandboxes = append(in.Observed.Sandboxes, observed.Sandbox{ID: id, PodUID: "u1", Attempt: attempt,
			Ready: ready, CreatedAt: now.Add(-time.Hour)})
	}
}

// instance adds a container instance "name#attempt" in sandbox s0, or in the one that edit says.
func instance(name string, attempt uint32, state observed.ContainerState,
	edit ...func(*observed.Container)) func(*Input) {
	return func(in *Input) {
		c := observed.Container{
			ID: fmt.Sprintf("%s#%d", name, attempt), SandboxID: "s0", PodUID: "u1", Name: name, Attempt: attempt,
			State: state,
			Image: "image:1", CreatedAt: now.Add(-20 * time.Second), StartedAt: now.Add(-20 * time.Second),
		}
		if state == observed.Exited {
			c.FinishedAt = now.Add(-time.Second)
		}
		for _, e := range edit {
			e(&c)
		}
		in.Observed.Containers = append(in.Observed.Containers, c)
	}
}

func exit(code int32) func(*observed.Container) {
	return func(c *observed.Container) { c.ExitCode = code }
}

func ago(started, finished time.Duration) func(*observed.Container) {
	return func(c *observed.Container) { c.StartedAt, c.FinishedAt = now.Add(-started), now.Add(-finished) }
}

func in(sandboxID string) func(*observed.Container) {
	return func(c *observed.Container) { c.SandboxID = sandboxID }
}

// key parses a key in readable form.
func key(text string) Key {
	for kind, name := range names {
		if object, found := strings.CutPrefix(text, name); found && (object == "" || object[0] == '/') {
			return Key{Kind: kind, Object: strings.TrimPrefix(object, "/")}
		}
	}
	panic("no kind of operation shows as " + text)
}

func op(text string, deadline ...time.Duration) func(*Input) {
	return func(in *Input) {
		o := Op{}
		if len(deadline) > 0 {
			o.Deadline = now.Add(deadline[0])
		}
		in.Ops[key(text)] = o
	}
}

func deleted(grace int64) func(*Input) {
	return func(in *Input) {
		in.Pod.DeletionTimestamp = &metav1.Time{Time: now.Add(time.Duration(grace) * time.Second)}
		in.Pod.DeletionGracePeriodSeconds = &grace
	}
}

func removed(in *Input) { in.Removed = true }
func released(in *Input) {
	in.Memory.Released, in.Memory.Prepared = in.Memory.Prepared, map[string]bool{}
}

func unprepared(in *Input) { in.Memory.Prepared = map[string]bool{} }

func phase(p corev1.PodPhase) func(*Input) {
	return func(in *Input) { in.Pod.Status.Phase = p }
}

func fault(text, reason string, count int, age time.Duration) func(*Input) {
	return func(in *Input) {
		in.Memory.Faults[key(text)] = Fault{At: now.Add(-age), Count: count, Reason: reason, Message: "because"}
	}
}

func ending(began, deadline time.Duration) func(*Input) {
	return func(in *Input) {
		in.Memory.Termination = &lifecycle.Termination{BeganAt: now.Add(-began), Deadline: now.Add(deadline)}
	}
}

func postStart(c *corev1.Container) {
	if c.Lifecycle == nil {
		c.Lifecycle = &corev1.Lifecycle{}
	}
	c.Lifecycle.PostStart = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}
}

func preStop(c *corev1.Container) {
	if c.Lifecycle == nil {
		c.Lifecycle = &corev1.Lifecycle{}
	}
	c.Lifecycle.PreStop = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}
}

func startupProbe(c *corev1.Container) { c.StartupProbe = &corev1.Probe{} }

// show renders a plan's actions: the kind, the object, the attempt of what is created, "+hook" for a preStop hook,
// the deadline.
func show(actions []Action) []string {
	var out []string
	for _, a := range actions {
		s := string(a.Kind)
		switch a.Kind {
		case StartContainer:
			s += fmt.Sprintf(" %s#%d", a.Container.Spec.Name, a.Attempt)
		case CreateSandbox:
			s += fmt.Sprintf(" #%d", a.Attempt)
		case Prepare, Release:
			s += " " + a.Object
		case StopSandbox, RemoveSandbox:
			s += " " + a.SandboxID
		case StopContainer:
			s += fmt.Sprintf(" %s in %s", a.ID, a.Deadline.Sub(now))
			if a.PreStop {
				s += " +hook"
			}
		case RunPostStart, RemoveContainer:
			s += " " + a.ID
		}
		out = append(out, s)
	}
	return out
}

// check compares the actions of a plan.
func check(t *testing.T, plan Plan, want ...string) {
	t.Helper()
	if got := show(plan.Actions); !slices.Equal(got, want) {
		t.Errorf("actions:\n  got  %s\n  want %s", strings.Join(got, "; "), strings.Join(want, "; "))
	}
}
