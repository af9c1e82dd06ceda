package podstate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/sizes"
)

// ReasonResize is why an instance is stopped that becomes another size by a restart.
const ReasonResize = "Resize"

// ResizeKey is the key of the operation that resizes what runs.
var ResizeKey = Key{Kind: ResizePod}

// Resize is how far the size that the node has given the Pod has come.
type Resize struct {
	// Standing is the size for which the Pod's cgroup stands; nil if the Pod was never resized.
	Standing *sizes.Size
	// Updated holds, by instance ID, the sizes of instances that have another one than they were created with.
	Updated map[string]sizes.Instance
	// Restarted holds the IDs of instances that end for a restart at another size.
	Restarted map[string]bool
}

// SizeOf returns the size that an instance has; ok is false if nobody knows.
func (r Resize) SizeOf(c *observed.Container) (size sizes.Instance, ok bool) {
	if size, ok = r.Updated[c.ID]; ok {
		return size, true
	}
	return sizes.Decode(c.Annotations[sizes.Annotation])
}

// Resizing is what a ResizePod does, in this order.
type Resizing struct {
	// Before is the size for which the Pod's cgroup stands, Wide that which bounds it and the one that is given.
	Before, Wide sizes.Size
	// Instances are resized while the cgroup stands for Wide.
	Instances []ResizedInstance
	// After is the size for which the cgroup stands in the end.
	After sizes.Size
}

// ResizedInstance is an instance that changes its size while it runs.
type ResizedInstance struct {
	ID        string
	Container lifecycle.Entry
	Has, Gets sizes.Instance
}

// resize brings the Pod's cgroup and what runs to the size that the Pod was given, and says whether it is at it now.
// An instance that becomes that size by a restart is stopped elsewhere, once the cgroup has room for its successor.
func (v *view) resize() bool {
	if v.in.Memory.Resize.Standing == nil && !v.differ() {
		return false
	}
	r := &Resizing{Before: v.standing(), After: v.toStandFor()}
	r.Wide = sizes.Widest(r.Before, sizes.Of(v.pod))
	for _, e := range v.entries {
		c := v.inSandbox(e.Spec.Name)
		if c != nil && len(v.toChange(e, c)) > 0 && !v.restartsToResize(e, c) {
			has, _ := v.in.Memory.Resize.SizeOf(c)
			r.Instances = append(r.Instances, ResizedInstance{ID: c.ID, Container: e, Has: has,
				Gets: sizes.InstanceOf(v.pod, e.Spec)})
		}
	}
	if len(r.Instances) == 0 && v.stands() {
		return false
	}
	if v.busy(Prepare) {
		return true
	}
	before := len(v.plan.Actions)
	v.act(Action{Key: ResizeKey, Resize: r})
	return len(v.plan.Actions) > before || v.busy(ResizePod)
}

// resizing reports whether something is not yet of the size that the Pod was given, be it that it is about to end: what
// comes after it is of that size, and there may be no room for that before.
func (v *view) resizing() bool { return v.differ() || !v.stands() }

// standing is the size for which the Pod's cgroup stands.
func (v *view) standing() sizes.Size {
	if standing := v.in.Memory.Resize.Standing; standing != nil {
		return *standing
	}
	return sizes.Of(v.pod)
}

// toStandFor is the size for which the cgroup shall stand: while an instance waits for its restart at another size,
// there is room for both.
func (v *view) toStandFor() sizes.Size {
	for _, e := range v.entries {
		if c := v.inSandbox(e.Spec.Name); c != nil && v.restartsToResize(e, c) {
			return sizes.Widest(v.standing(), sizes.Of(v.pod))
		}
	}
	return sizes.Of(v.pod)
}

// hasRoom reports whether the cgroup stands for no less than what was given: else what starts would not fit.
func (v *view) hasRoom() bool {
	standing := v.in.Memory.Resize.Standing
	return standing == nil ||
		sizes.Same(standing.Apply(v.pod), sizes.Widest(*standing, sizes.Of(v.pod)).Apply(v.pod))
}

// stands reports whether the cgroup stands for what it shall.
func (v *view) stands() bool {
	standing, target := v.standing(), v.toStandFor()
	return sizes.Same(standing.Apply(v.pod), target.Apply(v.pod))
}

// differ reports whether anything that runs, or is being started, has not the size that it was given.
func (v *view) differ() bool {
	if slices.ContainsFunc(v.entries, v.startsDifferent) {
		return true
	}
	return v.sandbox != nil && slices.ContainsFunc(v.in.Observed.Containers, func(c observed.Container) bool {
		e, known := v.byName[c.Name]
		return known && c.SandboxID == v.sandbox.ID && len(v.toChange(e, &c)) > 0
	})
}

// startsDifferent reports whether the container is being started at another size than it was given meanwhile.
func (v *view) startsDifferent(e lifecycle.Entry) bool {
	op := v.in.Ops[StartKey(e.Spec.Name)]
	return op.Size != nil && !op.Recalled && v.isResized(e) &&
		len(op.Size.Changed(sizes.InstanceOf(v.pod, e.Spec))) > 0
}

// isResized reports whether instances of the container may be of another size than it was given: there is no resize
// without another generation.
func (v *view) isResized(e lifecycle.Entry) bool {
	return e.Kind != lifecycle.Ephemeral && v.pod.Generation > 1
}

// toChange returns the resources of which a running instance has not what its container was given. An instance that an
// agent made which kept no sizes may lack all of them once its Pod was resized.
func (v *view) toChange(e lifecycle.Entry, c *observed.Container) []corev1.ResourceName {
	if !v.isResized(e) || c.State != observed.Running {
		return nil
	}
	has, known := v.in.Memory.Resize.SizeOf(c)
	switch {
	case !known && v.in.Memory.Resize.Standing == nil:
		return nil
	case !known:
		return sizes.Resized
	}
	return has.Changed(sizes.InstanceOf(v.pod, e.Spec))
}

// restartsToResize reports whether an instance becomes the size that its container was given by a restart only.
func (v *view) restartsToResize(e lifecycle.Entry, c *observed.Container) bool {
	if e.Kind == lifecycle.Init || len(e.Spec.ResizePolicy) == 0 {
		return false
	}
	return slices.ContainsFunc(v.toChange(e, c), func(name corev1.ResourceName) bool {
		return slices.Contains(e.Spec.ResizePolicy, corev1.ContainerResizePolicy{ResourceName: name,
			RestartPolicy: corev1.RestartContainer})
	})
}
