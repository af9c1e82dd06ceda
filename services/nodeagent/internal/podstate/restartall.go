package podstate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
)

// RestartingAllContainers is the API's reason of a container that waits, or was stopped, because all containers of
// its Pod restart.
const RestartingAllContainers = "RestartingAllContainers"

// RestartAll is the last restart of all containers of a Pod, because one of them ended so that its rule requires it.
// Sandbox and volumes stay, and ephemeral containers are not restarted. Nil means that there was no such restart.
//
//	the container ends -> RestartAll is saved -> the earlier instances end -> the Pod starts as at first
//
// It is saved before anything is done about it: from then on the earlier instances count as gone, so that no restart
// stops half-way and no end of a container causes two.
type RestartAll struct {
	// Container is the one that ended, ExitCode its exit code.
	Container string
	ExitCode  int32
	// Last holds, by container name, the attempt of the last instance before the restart.
	Last map[string]uint32
	// Stopped lists the containers whose last instance was still running.
	Stopped []string
}

// Earlier reports whether an instance is from before the restart of all containers.
func (r *RestartAll) Earlier(c *observed.Container) bool {
	return r.Before(c.Name, c.Attempt)
}

// Before reports whether an attempt of a container is from before the restart of all containers.
func (r *RestartAll) Before(name string, attempt uint32) bool {
	if r == nil {
		return false
	}
	last, known := r.Last[name]
	return known && attempt <= last
}

// Ended reports whether an instance ended because of the restart of all containers.
func (r *RestartAll) Ended(c *observed.Container) bool {
	return r != nil && c.Attempt == r.Last[c.Name] && slices.Contains(r.Stopped, c.Name)
}

// String returns the cause in readable form.
func (r *RestartAll) String() string {
	return fmt.Sprintf("Container %s ended with exit code %d, upon which all containers are restarted", r.Container,
		r.ExitCode)
}

// restartAll brings all containers down if one has ended so that its rule requires it, and reports whether that is
// going on.
func (v *view) restartAll() bool {
	if e, c := v.asksForAll(); c != nil {
		// What is being started would belong neither to the time before nor to the time after.
		if !v.recallStarts() {
			v.plan.RestartAll = v.beginAnew(e, c)
			v.plan.Streaks = v.spared(v.plan.RestartAll)
		}
		v.plan.Restarting = true
	} else {
		v.plan.Restarting = v.stopEarlier()
	}
	return v.plan.Restarting
}

// asksForAll returns the first container whose end requires a restart of all, with its instance; nil if none does.
func (v *view) asksForAll() (lifecycle.Entry, *observed.Container) {
	for _, e := range v.entries {
		c := v.latest(e.Spec.Name)
		if c != nil && c.State == observed.Exited && !v.cutShort(c) && !v.in.Memory.Resize.Restarted[c.ID] &&
			e.RestartsAll(c.ExitCode) {
			return e, c
		}
	}
	return lifecycle.Entry{}, nil
}

// recallStarts recalls the starts and hooks of the containers that restart, and reports whether any may still
// create an instance or run a hook.
func (v *view) recallStarts() bool {
	for key, op := range v.in.Ops {
		starts := key.Kind == StartContainer && v.byName[key.Object].Kind != lifecycle.Ephemeral && !op.Recalled
		if starts || key.Kind == RunPostStart {
			v.plan.Recall = append(v.plan.Recall, key)
		}
	}
	slices.SortFunc(v.plan.Recall, func(a, b Key) int { return strings.Compare(a.String(), b.String()) })
	return len(v.plan.Recall) > 0
}

// beginAnew returns a RestartAll that counts all existing instances as earlier ones.
func (v *view) beginAnew(cause lifecycle.Entry, ended *observed.Container) *RestartAll {
	r := &RestartAll{Container: cause.Spec.Name, ExitCode: ended.ExitCode, Last: map[string]uint32{}}
	before := v.in.Memory.RestartAll
	if before != nil {
		maps.Copy(r.Last, before.Last)
	}
	for _, e := range v.entries {
		name := e.Spec.Name
		c := v.in.Observed.Latest(name)
		if e.Kind == lifecycle.Ephemeral || c == nil {
			continue
		}
		r.Last[name] = c.Attempt
		if c.Live() || before.Ended(c) {
			r.Stopped = append(r.Stopped, name)
		}
	}
	return r
}

// spared returns where the back-offs of bystanders begin, so that what now ends does not count. Containers without
// an instance since the last restart of all were spared then.
func (v *view) spared(r *RestartAll) map[string]uint32 {
	streaks := map[string]uint32{}
	for _, e := range v.entries {
		if c := v.latest(e.Spec.Name); c != nil && e.Kind != lifecycle.Ephemeral && v.bystander(r, e, c) {
			streaks[c.Name] = v.in.Memory.Streaks[c.Name] + 1
		}
	}
	return streaks
}

// bystander reports whether an instance is followed by another only because all containers restart: it was stopped
// for that, or would have been the last one.
func (v *view) bystander(r *RestartAll, e lifecycle.Entry, c *observed.Container) bool {
	return r.Ended(c) || c.State == observed.Exited && !v.cutShort(c) && !e.Restarts(v.pod, c.ExitCode)
}

// stopEarlier ends the instances from before the restart of all containers, at once and without preStop hooks, and
// reports whether any is left.
func (v *view) stopEarlier() bool {
	left := false
	for i := range v.in.Observed.Containers {
		switch c := &v.in.Observed.Containers[i]; {
		case !v.in.Memory.RestartAll.Earlier(c):
		case c.Live():
			waits := v.discard(c, v.in.Now, StopReason{Reason: RestartingAllContainers,
				Message: "Stopping container " + c.Name + ": " + v.in.Memory.RestartAll.String()})
			left = left || waits
		case v.cutShort(c):
			left = left || !v.stays(c)
			v.remove(c)
		}
	}
	return left
}

// backsOff reports whether the containers have to wait before they restart: as long as the one that required it
// would have to wait alone.
func (v *view) backsOff() bool {
	r := v.in.Memory.RestartAll
	if r == nil || v.latest(r.Container) != nil {
		return false
	}
	e, known := v.byName[r.Container]
	prev := v.in.Observed.Latest(r.Container)
	return known && prev != nil && !v.crashDelayOver(e, prev, &Action{})
}

// showEarlier sets what containers that have not restarted yet wait for.
func (v *view) showEarlier() {
	for _, e := range v.entries {
		c := v.in.Observed.Latest(e.Spec.Name)
		if c == nil || c.Live() || !v.in.Memory.RestartAll.Earlier(c) {
			continue
		}
		if _, waits := v.plan.Waiting[e.Spec.Name]; !waits {
			v.plan.Waiting[e.Spec.Name] = Waiting{Reason: RestartingAllContainers,
				Message: v.in.Memory.RestartAll.String()}
		}
	}
}
