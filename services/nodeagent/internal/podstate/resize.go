package podstate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/sizes"
)

// ReasonResize is the reason of stopping an instance that is resized by a restart.
const ReasonResize = "Resize"

// ResizeKey is the key of the operation that resizes running instances and the cgroup.
var ResizeKey = Key{Kind: ResizePod}

// Resizing is what a ResizePod does, in this order.
type Resizing struct {
	// Actuated is the size of the Pod's cgroup, Max a size with room for it and for the allocated one.
	Actuated, Max sizes.Size
	// Instances are resized while the cgroup has the size Max.
	Instances []ResizedInstance
	// Target is the size that the cgroup gets at the end.
	Target sizes.Size
}

// ResizedInstance is an instance that changes its size while it runs.
type ResizedInstance struct {
	ID        string
	Container lifecycle.Entry
	// Actuated is the size that it has, Allocated the size that it gets.
	Actuated, Allocated sizes.Instance
}

// resize brings the Pod's cgroup and its running instances to the allocated size, and reports whether a resize is
// being done now. An instance that is resized by a restart is stopped elsewhere, once the cgroup has room for its
// successor.
func (v *view) resize() bool {
	if v.in.Memory.Resize.Cgroup == nil && !v.differ() {
		return false
	}
	r := &Resizing{Actuated: v.actuated(), Target: v.toActuate()}
	r.Max = sizes.Max(r.Actuated, sizes.Of(v.pod))
	for _, e := range v.entries {
		c := v.inSandbox(e.Spec.Name)
		if c != nil && len(v.toChange(e, c)) > 0 && !v.restartsToResize(e, c) {
			has, _ := v.in.Memory.Resize.SizeOf(c)
			r.Instances = append(r.Instances, ResizedInstance{ID: c.ID, Container: e, Actuated: has,
				Allocated: sizes.InstanceOf(v.pod, e.Spec)})
		}
	}
	if len(r.Instances) == 0 && v.isActuated() {
		return false
	}
	if v.busy(Prepare) {
		return true
	}
	before := len(v.plan.Actions)
	v.act(Action{Key: ResizeKey, Resize: r})
	return len(v.plan.Actions) > before || v.busy(ResizePod)
}

// resizing reports whether something does not have the allocated size yet, even if it is about to end: its
// successor will have that size, and may have no room before.
func (v *view) resizing() bool { return v.differ() || !v.isActuated() }

// actuated returns the size that the Pod's cgroup has.
func (v *view) actuated() sizes.Size {
	if cgroup := v.in.Memory.Resize.Cgroup; cgroup != nil {
		return *cgroup
	}
	return sizes.Of(v.pod)
}

// toActuate returns the size that the cgroup is to have: while an instance waits for its restart at another size,
// it has room for both.
func (v *view) toActuate() sizes.Size {
	for _, e := range v.entries {
		if c := v.inSandbox(e.Spec.Name); c != nil && v.restartsToResize(e, c) {
			return sizes.Max(v.actuated(), sizes.Of(v.pod))
		}
	}
	return sizes.Of(v.pod)
}

// hasRoom reports whether the cgroup is at least as large as the allocated size: otherwise a new instance would not
// fit.
func (v *view) hasRoom() bool {
	most := v.in.Memory.Resize.Max(sizes.Of(v.pod))
	return sizes.Same(v.actuated().Apply(v.pod), most.Apply(v.pod))
}

// isActuated reports whether the cgroup has the size that it is to have.
func (v *view) isActuated() bool {
	actuated, target := v.actuated(), v.toActuate()
	return sizes.Same(actuated.Apply(v.pod), target.Apply(v.pod))
}

// differ reports whether anything that runs, or is being started, does not have the allocated size.
func (v *view) differ() bool {
	if slices.ContainsFunc(v.entries, v.startsDifferent) {
		return true
	}
	return v.sandbox != nil && slices.ContainsFunc(v.in.Observed.Containers, func(c observed.Container) bool {
		e, known := v.byName[c.Name]
		return known && c.SandboxID == v.sandbox.ID && len(v.toChange(e, &c)) > 0
	})
}

// startsDifferent reports whether the container is being started at a size other than the one allocated meanwhile.
func (v *view) startsDifferent(e lifecycle.Entry) bool {
	op := v.in.Ops[StartKey(e.Spec.Name)]
	return op.Size != nil && !op.Recalled && v.isResized(e) &&
		len(op.Size.Changed(sizes.InstanceOf(v.pod, e.Spec))) > 0
}

// isResized reports whether instances of the container may have a size other than the allocated one: each resize
// changes the generation.
func (v *view) isResized(e lifecycle.Entry) bool {
	return e.Kind != lifecycle.Ephemeral && v.pod.Generation > 1
}

// toChange returns the resources of which a running instance does not have what its container was allocated. An
// instance that was created by an agent without records of sizes may lack all of them once its Pod was resized.
func (v *view) toChange(e lifecycle.Entry, c *observed.Container) []corev1.ResourceName {
	if !v.isResized(e) || c.State != observed.Running {
		return nil
	}
	has, known := v.in.Memory.Resize.SizeOf(c)
	switch {
	case !known && v.in.Memory.Resize.Cgroup == nil:
		return nil
	case !known:
		return sizes.Resized
	}
	return has.Changed(sizes.InstanceOf(v.pod, e.Spec))
}

// restartsToResize reports whether an instance gets the size allocated to its container only by a restart.
func (v *view) restartsToResize(e lifecycle.Entry, c *observed.Container) bool {
	if e.Kind == lifecycle.Init || len(e.Spec.ResizePolicy) == 0 {
		return false
	}
	return slices.ContainsFunc(v.toChange(e, c), func(name corev1.ResourceName) bool {
		return slices.Contains(e.Spec.ResizePolicy, corev1.ContainerResizePolicy{ResourceName: name,
			RestartPolicy: corev1.RestartContainer})
	})
}
