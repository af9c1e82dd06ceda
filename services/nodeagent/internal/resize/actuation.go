package resize

import (
	"maps"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/sizes"
)

// Actuation is how far the size that the node has allocated a Pod is actuated. The zero value is for a Pod that was
// never resized.
type Actuation struct {
	// Cgroup is the size that the Pod's cgroup has; nil if the Pod was never resized.
	Cgroup *sizes.Size
	// Updated maps the IDs of instances that were resized since their creation to their sizes.
	Updated map[string]sizes.Instance
	// Restarted holds the IDs of instances that end for a restart at another size.
	Restarted map[string]bool
}

// SizeOf returns the size that an instance has; ok is false if it is unknown.
func (a Actuation) SizeOf(c *observed.Container) (size sizes.Instance, ok bool) {
	if size, ok = a.Updated[c.ID]; ok {
		return size, true
	}
	return sizes.Decode(c.Annotations[sizes.Annotation])
}

// Max returns a size with room for the cgroup's size and for the allocated one.
func (a Actuation) Max(allocated sizes.Size) sizes.Size {
	if a.Cgroup == nil {
		return allocated
	}
	return sizes.Max(*a.Cgroup, allocated)
}

// Begin notes that the allocated size changes. Until the cgroup is resized, it may have its earlier size or the one
// allocated before.
func (a *Actuation) Begin(before sizes.Size) {
	cgroup := a.Max(before)
	a.Cgroup = &cgroup
}

// Note takes in which instances have been resized, and the cgroup's size.
func (a *Actuation) Note(updated map[string]sizes.Instance, cgroup sizes.Size) {
	if a.Updated == nil {
		a.Updated = map[string]sizes.Instance{}
	}
	maps.Copy(a.Updated, updated)
	a.Cgroup = &cgroup
}

// NoteRestart notes that an instance ends for a restart at another size.
func (a *Actuation) NoteRestart(id string) {
	if a.Restarted == nil {
		a.Restarted = map[string]bool{}
	}
	a.Restarted[id] = true
}

// Forget drops what is known of instances that are gone.
func (a *Actuation) Forget(gone func(id string) bool) {
	maps.DeleteFunc(a.Updated, func(id string, _ sizes.Instance) bool { return gone(id) })
	maps.DeleteFunc(a.Restarted, func(id string, _ bool) bool { return gone(id) })
}
