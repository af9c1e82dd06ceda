package resize

import (
	"maps"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/sizes"
)

// Actuation is how far the size that the node has allocated a Pod is actuated. The zero value is that of a Pod which
// was never resized.
type Actuation struct {
	// Cgroup is the size that the Pod's cgroup has; nil if the Pod was never resized.
	Cgroup *sizes.Size
	// Updated holds, by instance ID, the sizes of instances that have another one than they were created with.
	Updated map[string]sizes.Instance
	// Restarted holds the IDs of instances that end for a restart at another size.
	Restarted map[string]bool
}

// SizeOf returns the size that an instance has; ok is false if nobody knows.
func (a Actuation) SizeOf(c *observed.Container) (size sizes.Instance, ok bool) {
	if size, ok = a.Updated[c.ID]; ok {
		return size, true
	}
	return sizes.Decode(c.Annotations[sizes.Annotation])
}

// Max is the size that has room for the one that the cgroup has, and for the allocated one.
func (a Actuation) Max(allocated sizes.Size) sizes.Size {
	if a.Cgroup == nil {
		return allocated
	}
	return sizes.Max(*a.Cgroup, allocated)
}

// Begin notes that another size is allocated than before. The cgroup may have either of those before until it is told
// to have another.
func (a *Actuation) Begin(before sizes.Size) {
	cgroup := a.Max(before)
	a.Cgroup = &cgroup
}

// Note takes in which instances have been resized, and the size that the cgroup has.
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
