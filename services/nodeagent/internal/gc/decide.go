// Package gc removes what Pods have left on the node: earlier instances of their containers, sandboxes that were
// replaced, containers that the runtime has lost, and unused images. Pure functions decide what to remove.
package gc

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime"
)

// deadContainers returns the instances to remove: of each container of each Pod, all that have exited except the
// newest instance and the newest one that has exited. The API shows these two, and their logs can be read.
func deadContainers(pods []observed.Pod) []string {
	var out []string
	for i := range pods {
		kept := map[string]bool{}
		pods[i].Sort()
		for _, c := range pods[i].Containers {
			if c.State != observed.Exited {
				continue
			}
			if kept[c.Name] {
				out = append(out, c.ID)
			}
			kept[c.Name] = true
		}
	}
	return out
}

// deadSandboxes returns the sandboxes to remove: those that were replaced and have no container.
func deadSandboxes(pods []observed.Pod) []string {
	var out []string
	for i := range pods {
		pods[i].Sort()
		for j, s := range pods[i].Sandboxes {
			used := slices.ContainsFunc(pods[i].Containers,
				func(c observed.Container) bool { return c.SandboxID == s.ID })
			if j > 0 && !s.Ready && !used {
				out = append(out, s.ID)
			}
		}
	}
	return out
}

// imageUse is what is known of the use of one image.
type imageUse struct {
	firstSeen time.Time
	lastUsed  time.Time // zero: not since it was first seen
}

// idle returns how long the image has been unused, as far as known.
func (u imageUse) idle(now time.Time) time.Duration {
	if u.lastUsed.After(u.firstSeen) {
		return now.Sub(u.lastUsed)
	}
	return now.Sub(u.firstSeen)
}

// unused returns the images that no container uses and that are not pinned.
func unused(images []runtime.Image, inUse map[string]bool) []runtime.Image {
	return slices.DeleteFunc(slices.Clone(images),
		func(image runtime.Image) bool { return image.Pinned || inUse[image.ID] })
}

// unusedImages returns which of the unused images to remove: all that were unused for longer than the maximum age,
// and as many of the others that are not new, the longest unused first, as are needed to free at least need bytes
// in all.
func unusedImages(images []runtime.Image, uses map[string]imageUse, need uint64, s Settings, now time.Time) []string {
	var out []string
	var candidates []runtime.Image
	for _, image := range images {
		use := uses[image.ID]
		switch {
		case s.MaxAge > 0 && use.idle(now) > s.MaxAge:
			out = append(out, image.ID)
			need -= min(need, image.Size)
		case now.Sub(use.firstSeen) >= s.MinAge:
			candidates = append(candidates, image)
		}
	}
	slices.SortFunc(candidates, func(a, b runtime.Image) int {
		return cmp.Or(uses[a.ID].lastUsed.Compare(uses[b.ID].lastUsed),
			uses[a.ID].firstSeen.Compare(uses[b.ID].firstSeen), cmp.Compare(a.ID, b.ID))
	})
	for _, image := range candidates {
		if need == 0 {
			break
		}
		out = append(out, image.ID)
		need -= min(need, image.Size)
	}
	return out
}

// sizeOf returns the size of an image.
func sizeOf(images []runtime.Image, id string) uint64 {
	for i := range images {
		if images[i].ID == id {
			return images[i].Size
		}
	}
	return 0
}

// tooLittle returns the kubelet's message that images freed less than was needed.
func tooLittle(need, freed uint64) string {
	return fmt.Sprintf("Failed to garbage collect required amount of images. Attempted to free %d bytes, "+
		"but only found %d bytes eligible to free.", need, freed)
}

// failing counts consecutive failed rounds.
type failing int

// began takes in the result of a round, and reports whether the number of failures has just reached rounds.
func (f *failing) began(err error, rounds failing) bool {
	if err == nil {
		*f = 0
		return false
	}
	*f++
	return *f == rounds
}

// toFree returns how many bytes of images must be freed on a file system of total bytes: none while less than high
// percent of it is used, else as many as bring it down to low percent.
func toFree(total, free uint64, high, low int) uint64 {
	used := total - min(free, total)
	if used*100 < total*uint64(high) {
		return 0
	}
	target := total / 100 * uint64(low)
	return used - min(used, target)
}
