package csivolume

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Standing is a published volume of a Pod.
type Standing struct {
	Pod types.UID
	// Name is the name of the PersistentVolume, or of an inline volume in its Pod. Claim is the name of the Pod's
	// claim; empty for an inline volume.
	Name, Claim    string
	Driver, Handle string
	// Target is where the volume is published, Staging where it is staged; empty if it is not.
	Target, Staging string
}

// Standing returns the published volumes of all Pods, sorted by Pod and name. A volume that is being unpublished is
// none of them: what is at its path may already be something else.
func (v *Volumes) Standing() []Standing {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []Standing
	for at, r := range v.pods {
		if !r.Published || v.ending[at] {
			continue
		}
		one := Standing{Pod: at.pod, Name: at.name, Claim: r.Claim, Driver: r.Driver, Handle: r.Handle,
			Target: v.published(at, r.Block)}
		if _, staged := v.staged[r.id()]; staged {
			one.Staging = v.staging(r.id())
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Name, b.Name))
	})
	return out
}
