package podstate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/sizes"
)

// world is a model of one node with one Pod. Time, crashes, failures and the user's acts are drawn at random; so
// are the order and outcome of the plan's actions.
type world struct {
	t       *rapid.T
	in      Input
	pending []Action
	serial  int
	// failing lets actions fail and containers crash.
	failing bool
	deleted bool
	gone    bool
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, failing: true, in: build()}
	spec := &w.in.Pod.Spec
	spec.RestartPolicy = rapid.SampledFrom([]corev1.RestartPolicy{"Always", "OnFailure", "Never"}).Draw(t, "policy")
	for i := range rapid.IntRange(0, 3).Draw(t, "inits") {
		c := container(fmt.Sprintf("i%d", i))
		if rapid.Bool().Draw(t, "sidecar") {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		drawRule(t, &c)
		spec.InitContainers = append(spec.InitContainers, c)
	}
	w.in.Pod.Generation = 2
	for i := range rapid.IntRange(1, 2).Draw(t, "mains") {
		c := container(fmt.Sprintf("m%d", i))
		c.Resources = limitedTo(2)
		if spec.RestartPolicy != "Never" && rapid.Bool().Draw(t, "restarts to resize") {
			c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu",
				RestartPolicy: corev1.RestartContainer}}
		}
		if rapid.Bool().Draw(t, "hooked") {
			postStart(&c)
		}
		drawRule(t, &c)
		spec.Containers = append(spec.Containers, c)
	}
	unprepared(&w.in)
	w.in.Pod.Status.Phase = corev1.PodPending
	return w
}

// drawRule gives some containers a rule that restarts all after a failure.
func drawRule(t *rapid.T, c *corev1.Container) {
	if rapid.IntRange(0, 2).Draw(t, "for all") == 0 {
		c.RestartPolicyRules = []corev1.ContainerRestartRule{{
			Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: []int32{1}}}}
	}
}

func (w *world) step() {
	w.in.Observed.Sort()
	before := fmt.Sprintf("%+v %+v %+v", w.in.Observed, w.in.Memory, w.in.Ops)
	plan := Decide(w.in)
	if again := Decide(w.in); !reflect.DeepEqual(show(plan.Actions), show(again.Actions)) {
		w.t.Fatalf("the same input gives %v and then %v", show(plan.Actions), show(again.Actions))
	}
	if after := fmt.Sprintf("%+v %+v %+v", w.in.Observed, w.in.Memory, w.in.Ops); after != before {
		w.t.Fatalf("Decide changed its input:\n%s\n%s", before, after)
	}
	w.checkTermination(plan)
	w.checkRestartAll(plan)
	for _, key := range plan.Recall {
		if key.Kind == StartContainer && rapid.Bool().Draw(w.t, "gets its images") {
			w.in.Ops[key] = Op{Recalled: true}
		}
	}
	if plan.Termination != nil {
		w.in.Memory.Termination = plan.Termination
	}
	if plan.Stopped && !w.in.Removed {
		w.checkStopped()
		if rapid.Bool().Draw(w.t, "status written") || !w.failing {
			w.in.Pod.Status.Phase = corev1.PodFailed
		}
	}
	for _, a := range plan.Actions {
		w.checkAction(a)
		w.in.Ops[a.Key] = Op{Deadline: a.Deadline}
		if a.Kind == StopContainer && a.Reason == ReasonResize {
			w.in.Memory.Resize.Restarted[a.ID] = true
		}
		w.pending = append(w.pending, a)
	}
	w.gone = plan.Gone
}

// A restart of all containers is saved before anything is done, and each end of a container causes at most one.
func (w *world) checkRestartAll(plan Plan) {
	if plan.RestartAll == nil {
		return
	}
	before, next := w.in.Memory.RestartAll, plan.RestartAll
	cause := w.in.Observed.Latest(next.Container)
	if len(plan.Actions) > 0 || cause.ExitCode != 1 || before.Earlier(cause) || !next.Earlier(cause) {
		w.t.Fatalf("%v after %+v, with %v", next, before, show(plan.Actions))
	}
	for name, streak := range plan.Streaks {
		if c := w.in.Observed.Latest(name); streak > c.Attempt+1 {
			w.t.Fatalf("the back-off of %s begins with %d after %d", name, streak, c.Attempt)
		}
	}
	if !w.failing || rapid.Bool().Draw(w.t, "kept") {
		w.in.Memory.RestartAll = next
		maps.Copy(w.in.Memory.Streaks, plan.Streaks)
	}
}

// SAF-129 SAF-198: a deadline never moves back.
func (w *world) checkTermination(plan Plan) {
	if old := w.in.Memory.Termination; old != nil && plan.Termination != nil &&
		plan.Termination.Deadline.After(old.Deadline) {
		w.t.Fatalf("the deadline moved from %v to %v", old.Deadline, plan.Termination.Deadline)
	}
}

// SAF-141: a Pod counts as stopped only when nothing of it can be alive.
func (w *world) checkStopped() {
	for i := range w.in.Observed.Containers {
		if c := &w.in.Observed.Containers[i]; w.lives(c) {
			w.t.Fatalf("stopped while %s is %s", c.ID, c.State)
		}
	}
}

// lives reports whether an instance may have a process: one that was created and could not be removed has none.
func (w *world) lives(c *observed.Container) bool {
	return c.Live() && (c.State != created || w.in.Memory.Faults[removeKey(c)].Count < maxRemovals)
}

func (w *world) checkAction(a Action) {
	ended := w.deleted || podview.IsTerminal(w.in.Pod)
	switch a.Kind {
	case Prepare, CreateSandbox, StartContainer, RunPostStart, ResizePod:
		if ended { // SAF-122
			w.t.Fatalf("%v in a Pod that has ended", show([]Action{a}))
		}
	case Release:
		w.checkRelease(a)
	case DeletePod: // SAF-141 SAF-142 SAF-172
		if !w.in.Observed.Empty() || len(w.in.Memory.Released) < len(w.in.Steps) || !podview.IsTerminal(w.in.Pod) ||
			len(w.in.Ops) > 0 {
			w.t.Fatalf("the object goes while something is left: %+v", w.in)
		}
	case StopContainer:
		w.checkStop(a)
	}
	if a.Kind == StartContainer {
		w.checkStart(a)
	}
	w.checkRoom(a)
}

// limitedTo returns the resources of a container with that many CPUs.
func limitedTo(cpus int64) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(cpus, resource.DecimalSI)}}
}

// DEP-214: the Pod's cgroup never has less than an instance has, or is about to get.
func (w *world) checkRoom(a Action) {
	covers := func(size sizes.Size, name string, has sizes.Instance) {
		room, limited := size.Containers[name].Limits[corev1.ResourceCPU]
		if limit := has.Resources.Limits[corev1.ResourceCPU]; limited && room.Cmp(limit) < 0 {
			w.t.Fatalf("%v: the cgroup has %s, %s has %s", a.Key, &room, name, &limit)
		}
	}
	if a.Kind == StartContainer && w.in.Memory.Resize.Cgroup != nil {
		covers(*w.in.Memory.Resize.Cgroup, a.Container.Spec.Name, sizes.InstanceOf(w.in.Pod, a.Container.Spec))
	}
	if a.Kind != ResizePod {
		return
	}
	gets := map[string]sizes.Instance{}
	for _, i := range a.Resize.Instances {
		gets[i.ID] = i.Allocated
	}
	for i := range w.in.Observed.Containers {
		c := &w.in.Observed.Containers[i]
		has, known := w.in.Memory.Resize.SizeOf(c)
		if c.State != running || !known {
			continue
		}
		covers(a.Resize.Max, c.Name, has)
		if next, changes := gets[c.ID]; changes {
			has = next
		}
		covers(a.Resize.Target, c.Name, has)
	}
}

// resize gives a container another size, as the worker does when the node has granted it.
func (w *world) resize(i int, cpus int64) {
	w.in.Memory.Resize.Begin(sizes.Of(w.in.Pod))
	w.in.Pod.Spec.Containers[i].Resources = limitedTo(cpus)
}

// Steps are taken down in reverse order, each only when all later ones are gone, and only for a Pod in which
// nothing is alive.
func (w *world) checkRelease(a Action) {
	w.checkStopped()
	i := slices.Index(w.in.Steps, a.Object)
	for _, later := range w.in.Steps[i+1:] {
		if !w.in.Memory.Released[later] {
			w.t.Fatalf("step %s goes before %s", a.Object, later)
		}
	}
}

// SAF-170: no second live instance; POD-196 POD-197: init containers in order, each successful before the next.
func (w *world) checkStart(a Action) {
	for i := range w.in.Observed.Containers {
		if c := &w.in.Observed.Containers[i]; c.Name == a.Container.Spec.Name &&
			(w.lives(c) || c.Attempt >= a.Attempt) {
			w.t.Fatalf("starting %s#%d beside %s, which is %s", c.Name, a.Attempt, c.ID, c.State)
		}
	}
	if r := w.in.Memory.RestartAll; r != nil {
		if last, known := r.Last[a.Container.Spec.Name]; known && a.Attempt <= last {
			w.t.Fatalf("starting %s#%d, which is of the time before all began anew", a.Container.Spec.Name, a.Attempt)
		}
	}
	mainBegan := false
	for i := range w.in.Observed.Containers {
		c := &w.in.Observed.Containers[i]
		earlier := w.in.Memory.RestartAll.Earlier(c)
		if earlier && w.lives(c) {
			w.t.Fatalf("starting %s although %s is %s", a.Container.Spec.Name, c.ID, c.State)
		}
		mainBegan = mainBegan || !earlier && c.SandboxID == a.SandboxID && strings.HasPrefix(c.Name, "m")
	}
	for _, e := range lifecycle.Entries(w.in.Pod) {
		if e.Spec.Name == a.Container.Spec.Name {
			return
		}
		if e.Kind != lifecycle.Init || mainBegan {
			continue
		}
		if !w.succeeded(e.Spec.Name, a.SandboxID) {
			w.t.Fatalf("starting %s before %s has succeeded", a.Container.Spec.Name, e.Spec.Name)
		}
	}
}

func (w *world) succeeded(name, sandboxID string) bool {
	for i := range w.in.Observed.Containers {
		c := &w.in.Observed.Containers[i]
		if c.Name == name && c.SandboxID == sandboxID && c.State == exited && c.ExitCode == 0 &&
			!w.in.Memory.RestartAll.Earlier(c) {
			return true
		}
	}
	return false
}

// POD-243: at the end of a Pod a sidecar is stopped only after all others, or past the deadline.
func (w *world) checkStop(a Action) {
	term := w.in.Memory.Termination
	if a.Container.Kind != lifecycle.Sidecar || term == nil || !w.in.Now.Before(term.Deadline) ||
		a.Reason != reasonTerminating {
		return
	}
	for i := range w.in.Observed.Containers {
		if c := &w.in.Observed.Containers[i]; w.lives(c) && strings.HasPrefix(c.Name, "m") {
			w.t.Fatalf("stopping sidecar %s while %s is alive", a.ID, c.ID)
		}
	}
}

// finish carries out one pending action.
func (w *world) finish(i int) {
	a := w.pending[i]
	w.pending = append(w.pending[:i:i], w.pending[i+1:]...)
	recalled := w.in.Ops[a.Key].Recalled
	delete(w.in.Ops, a.Key)
	if recalled {
		return
	}
	if w.failing && rapid.IntRange(0, 3).Draw(w.t, "fails") == 0 {
		if !w.halfDone(a) {
			f := w.in.Memory.Faults[a.Key]
			w.in.Memory.Faults[a.Key] = Fault{At: w.in.Now, Count: f.Count + 1, Reason: CreateContainerError}
		}
		return
	}
	delete(w.in.Memory.Faults, a.Key)
	w.carryOut(a)
}

// halfDone leaves a start between creation and start, as an agent that dies there does.
func (w *world) halfDone(a Action) bool {
	if a.Kind != StartContainer || !rapid.Bool().Draw(w.t, "half done") {
		return false
	}
	w.addInstance(a, created)
	return true
}

func (w *world) addInstance(a Action, state observed.ContainerState) {
	size, err := sizes.InstanceOf(w.in.Pod, a.Container.Spec).Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	w.in.Observed.Containers = append(w.in.Observed.Containers, observed.Container{
		ID: fmt.Sprintf("%s#%d.%d", a.Container.Spec.Name, a.Attempt, w.serial), SandboxID: a.SandboxID,
		Name:    a.Container.Spec.Name,
		Attempt: a.Attempt, State: state, Image: "image:1", CreatedAt: w.in.Now, StartedAt: w.in.Now,
		Annotations: map[string]string{sizes.Annotation: size},
	})
	w.serial++
}

func (w *world) carryOut(a Action) {
	obs, mem := w.in.Observed, &w.in.Memory
	switch a.Kind {
	case Prepare:
		mem.Prepared[a.Object] = true
		delete(mem.Released, a.Object)
	case Release:
		mem.Released[a.Object] = true
		delete(mem.Prepared, a.Object)
	case CreateSandbox:
		w.serial++
		obs.Sandboxes = append(obs.Sandboxes, observed.Sandbox{ID: fmt.Sprintf("s%d", w.serial), Attempt: a.Attempt,
			Ready: true, CreatedAt: w.in.Now})
	case StopSandbox:
		mem.SandboxesStopped[a.SandboxID] = true
		w.eachIn(a.SandboxID, func(c *observed.Container) { w.exit(c, 137) })
		for i := range obs.Sandboxes {
			if obs.Sandboxes[i].ID == a.SandboxID {
				obs.Sandboxes[i].Ready = false
			}
		}
	case RemoveSandbox:
		obs.Sandboxes = keepIf(obs.Sandboxes, func(s observed.Sandbox) bool { return s.ID != a.SandboxID })
		obs.Containers = keepIf(obs.Containers, func(c observed.Container) bool { return c.SandboxID != a.SandboxID })
	case StartContainer:
		if s := obs.Sandbox(); s != nil && s.ID == a.SandboxID && s.Ready {
			w.addInstance(a, running)
		}
		if a.Streak != nil {
			mem.Streaks[a.Container.Spec.Name] = *a.Streak
		}
	case RunPostStart:
		mem.Hooked[a.ID] = true
	case ResizePod:
		for _, i := range a.Resize.Instances {
			mem.Resize.Updated[i.ID] = i.Allocated
		}
		mem.Resize.Cgroup = &a.Resize.Target
	case StopContainer:
		if c := obs.ByID(a.ID); c != nil {
			w.exit(c, 143)
		}
	case RemoveContainer:
		obs.Containers = keepIf(obs.Containers, func(c observed.Container) bool { return c.ID != a.ID })
	case DeletePod:
		w.in.Removed = true
	}
}

func (w *world) exit(c *observed.Container, code int32) {
	if c.Live() {
		c.State, c.ExitCode, c.FinishedAt = exited, code, w.in.Now
	}
}

func (w *world) eachIn(sandboxID string, do func(*observed.Container)) {
	for i := range w.in.Observed.Containers {
		if c := &w.in.Observed.Containers[i]; c.SandboxID == sandboxID {
			do(c)
		}
	}
}

func keepIf[T any](in []T, keep func(T) bool) []T {
	var out []T
	for _, x := range in {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

// happen makes one event happen.
func (w *world) happen() {
	switch rapid.IntRange(-1, 9).Draw(w.t, "event") {
	case -1: // the user resizes a container, between operations as the model carries them out at once
		if len(w.pending) == 0 {
			w.resize(rapid.IntRange(0, len(w.in.Pod.Spec.Containers)-1).Draw(w.t, "whose"),
				rapid.Int64Range(1, 3).Draw(w.t, "cpus"))
		}
	case 0: // a container ends
		for i := range w.in.Observed.Containers {
			if c := &w.in.Observed.Containers[i]; c.State == running && rapid.Bool().Draw(w.t, "ends") {
				w.exit(c, rapid.Int32Range(0, 1).Draw(w.t, "code"))
			}
		}
	case 1: // the agent dies and restarts
		w.pending, w.in.Ops = nil, map[Key]Op{}
		old := w.in.Memory
		w.in.Memory = build().Memory
		unprepared(&w.in)
		w.in.Memory.Streaks, w.in.Memory.Hooked, w.in.Memory.Resize = old.Streaks, old.Hooked, old.Resize
		w.in.Memory.RestartAll = old.RestartAll
	case 2: // the sandbox dies with all that is in it, as in a reboot
		if s := w.in.Observed.Sandbox(); s != nil && rapid.IntRange(0, 3).Draw(w.t, "dies") == 0 {
			s.Ready = false
			w.eachIn(s.ID, func(c *observed.Container) { w.exit(c, 137) })
		}
	case 3: // the user deletes the Pod, perhaps again with another period
		if rapid.IntRange(0, 3).Draw(w.t, "deletes") == 0 {
			deleted(rapid.Int64Range(0, 60).Draw(w.t, "grace"))(&w.in)
			w.deleted = true
		}
	case 4:
		w.in.Now = w.in.Now.Add(time.Duration(rapid.IntRange(1, 400).Draw(w.t, "seconds")) * time.Second)
	default:
		if len(w.pending) > 0 {
			w.finish(rapid.IntRange(0, len(w.pending)-1).Draw(w.t, "which"))
		}
	}
}

// The safety properties hold in every world, and once nothing fails any more a deleted Pod goes away.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			w.step()
			w.happen()
		}
		w.failing = false
		w.in.Pod.DeletionTimestamp, w.in.Pod.DeletionGracePeriodSeconds = &metav1.Time{Time: w.in.Now}, ptr.To(int64(1))
		w.deleted = true
		for range 100 { // POD-150: deletion is certain to complete
			w.step()
			if w.gone {
				return
			}
			if len(w.pending) > 0 {
				w.finish(0)
			}
			w.in.Now = w.in.Now.Add(time.Minute)
		}
		t.Fatalf("a deleted Pod does not go away: %+v", w.in)
	})
}
