package deviceplugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/lifecycle"
)

// Devices are the devices of one container: their IDs, sorted, by resource.
type Devices map[corev1.ResourceName][]string

// Allocation is the devices of one Pod, by the names of its containers.
type Allocation map[string]Devices

// stock is what plugins have: by resource and ID, whether a device is healthy. Resources that are not in it are not
// managed by plugins.
type stock map[corev1.ResourceName]map[string]bool

// healthy returns the devices that may be assigned.
func healthy(has stock) Devices {
	out := Devices{}
	for name, devices := range has {
		for _, id := range slices.Sorted(maps.Keys(devices)) {
			if devices[id] {
				out[name] = append(out[name], id)
			}
		}
	}
	return out
}

// set is a set of devices, by resource and ID.
type set map[corev1.ResourceName]map[string]bool

func (s set) add(name corev1.ResourceName, ids []string) {
	if s[name] == nil {
		s[name] = map[string]bool{}
	}
	for _, id := range ids {
		s[name][id] = true
	}
}

func (s set) remove(name corev1.ResourceName, ids []string) {
	for _, id := range ids {
		delete(s[name], id)
	}
}

// choice is the devices of one resource for one container.
type choice struct {
	Container string
	Resource  corev1.ResourceName
}

// question asks a plugin which of its devices it prefers for a choice: Size of those Available, including all of
// Must.
type question struct {
	choice
	Available, Must []string
	Size            int
}

// request is all that the devices of a Pod depend on.
type request struct {
	Pod   *corev1.Pod
	Stock stock
	// Taken are the devices of all other Pods.
	Taken set
	// Preferred is what plugins have answered; for a choice without usable devices, assign chooses.
	Preferred map[choice][]string
}

// assign chooses the devices of all containers of a Pod, and returns the questions that plugins may be asked before
// the choice is final. An init container leaves its devices to later containers; a sidecar keeps them.
func assign(in request) (Allocation, []question, error) {
	out, open := Allocation{}, []question(nil)
	own, reusable := set{}, set{}
	for _, entry := range lifecycle.Entries(in.Pod) {
		if entry.Kind == lifecycle.Ephemeral {
			continue
		}
		wanted := needs(entry.Spec, in.Stock)
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			ids, ask, err := pick(in, choice{entry.Spec.Name, name}, wanted[name], own, reusable)
			if err != nil {
				return nil, nil, err
			}
			if ask != nil {
				open = append(open, *ask)
			}
			if out[entry.Spec.Name] == nil {
				out[entry.Spec.Name] = Devices{}
			}
			out[entry.Spec.Name][name] = ids
			own.add(name, ids)
			if entry.Kind == lifecycle.Init {
				reusable.add(name, ids)
			} else {
				reusable.remove(name, ids)
			}
		}
	}
	return out, open, nil
}

// needs returns how many devices of which plugins a container requests.
func needs(container *corev1.Container, has stock) map[corev1.ResourceName]int {
	out := map[corev1.ResourceName]int{}
	for name, quantity := range container.Resources.Limits {
		if _, managed := has[name]; managed && quantity.Sign() > 0 {
			out[name] = int(quantity.Value())
		}
	}
	return out
}

// pick chooses devices of one resource for one container: first what init containers have left, then what the
// plugin prefers, then any. own are the devices of the Pod so far.
func pick(in request, which choice, size int, own, reusable set) ([]string, *question, error) {
	name := which.Resource
	out := slices.Sorted(maps.Keys(reusable[name]))
	out = out[:min(size, len(out))]
	if len(out) == size {
		return out, nil, nil
	}
	free, healthy := []string(nil), false
	for _, id := range slices.Sorted(maps.Keys(in.Stock[name])) {
		healthy = healthy || in.Stock[name][id]
		if in.Stock[name][id] && !in.Taken[name][id] && !own[name][id] {
			free = append(free, id)
		}
	}
	switch {
	case !healthy:
		return nil, nil, fmt.Errorf("no healthy devices present; cannot allocate unhealthy devices %s", name)
	case len(free) < size-len(out):
		return nil, nil, fmt.Errorf("requested number of devices unavailable for %s. Requested: %d, Available: %d",
			name, size-len(out), len(free))
	}
	preferred, asked := in.Preferred[which]
	var ask *question
	if !asked && len(free) > size-len(out) {
		ask = &question{choice: which, Available: slices.Sorted(slices.Values(slices.Concat(out, free))),
			Must: slices.Clone(out), Size: size}
	}
	for _, id := range slices.Concat(preferred, free) {
		if len(out) < size && slices.Contains(free, id) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out, ask, nil
}

// fileName returns the name of a resource's file: a resource's name has one slash and no tilde.
func fileName(name corev1.ResourceName) string { return strings.Replace(string(name), "/", "~", 1) }

// resourceOf returns the resource of a file.
func resourceOf(file string) corev1.ResourceName {
	return corev1.ResourceName(strings.Replace(file, "~", "/", 1))
}
