package cpupin

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/cpuset"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/qos"
)

// Assignment is the exclusive CPUs of one Pod, by the names of its containers.
type Assignment map[string]cpuset.CPUSet

// all returns the CPUs of the Pod as a whole.
func (a Assignment) all() cpuset.CPUSet {
	out := cpuset.New()
	for _, cpus := range a {
		out = out.Union(cpus)
	}
	return out
}

// request is all that the CPUs of a Pod depend on.
type request struct {
	Pod     *corev1.Pod
	Machine Machine
	// Free are the CPUs that may be assigned: they are neither taken nor reserved.
	Free cpuset.CPUSet
}

// assign chooses the exclusive CPUs of all containers of a Pod; empty for a Pod without any. An init container
// leaves its CPUs to later containers; a sidecar keeps them.
func assign(in request) (Assignment, error) {
	out := Assignment{}
	own, reusable := cpuset.New(), cpuset.New()
	for _, entry := range lifecycle.Entries(in.Pod) {
		n := wanted(in.Pod, entry)
		if n == 0 {
			continue
		}
		cpus, err := pick(in.Machine, in.Free.Difference(own), reusable, n)
		if err != nil {
			return nil, err
		}
		out[entry.Spec.Name] = cpus
		own = own.Union(cpus)
		if entry.Kind == lifecycle.Init {
			reusable = reusable.Union(cpus)
		} else {
			reusable = reusable.Difference(cpus)
		}
	}
	return out, nil
}

// wanted returns how many exclusive CPUs a container gets: its request, if that is a whole number, in a Pod that is
// Guaranteed by the amounts of its containers.
func wanted(pod *corev1.Pod, entry lifecycle.Entry) int {
	if entry.Kind == lifecycle.Ephemeral || resource.IsPodLevelResourcesSet(pod) ||
		qos.Class(pod) != corev1.PodQOSGuaranteed {
		return 0
	}
	cpu, ok := entry.Spec.Resources.Requests[corev1.ResourceCPU]
	if !ok {
		cpu = entry.Spec.Resources.Limits[corev1.ResourceCPU]
	}
	if cpu.MilliValue()%1000 != 0 {
		return 0
	}
	return int(cpu.MilliValue() / 1000)
}

// pick chooses n CPUs: first those that init containers have left.
func pick(machine Machine, free, reusable cpuset.CPUSet, n int) (cpuset.CPUSet, error) {
	if n <= reusable.Size() {
		return take(machine, reusable, n), nil
	}
	if has := free.Size() + reusable.Size(); n > has {
		return cpuset.New(), fmt.Errorf("not enough cpus available to satisfy request: requested=%d, available=%d", n,
			has)
	}
	return reusable.Union(take(machine, free, n-reusable.Size())), nil
}

// CPU is one logical CPU. Core numbers its core within its Socket.
type CPU struct{ ID, Core, Socket int }

// Machine is the CPUs of a machine.
type Machine []CPU

// all returns the IDs.
func (m Machine) all() cpuset.CPUSet {
	out := make([]int, len(m))
	for i := range m {
		out[i] = m[i].ID
	}
	return cpuset.New(out...)
}

// group identifies a socket, a core or a single CPU; unused fields are -1.
type group struct{ Socket, Core, ID int }

// The groupings that are taken as a whole, the largest first.
var groupings = []func(CPU) group{
	func(c CPU) group { return group{c.Socket, -1, -1} },
	func(c CPU) group { return group{c.Socket, c.Core, -1} },
	func(c CPU) group { return group{c.Socket, c.Core, c.ID} },
}

// groups returns the CPUs of each group.
func (m Machine) groups(of func(CPU) group) map[group]cpuset.CPUSet {
	ids := map[group][]int{}
	for _, c := range m {
		ids[of(c)] = append(ids[of(c)], c.ID)
	}
	out := make(map[group]cpuset.CPUSet, len(ids))
	for g, members := range ids {
		out[g] = cpuset.New(members...)
	}
	return out
}

// take chooses n of the free CPUs, of which at least n exist: whole sockets, then whole cores, then single CPUs. It
// stays in the socket in which it began, begins in the one with the least room that suffices, and breaks up a core
// only if none is partly used already.
func take(machine Machine, free cpuset.CPUSet, n int) cpuset.CPUSet {
	out := cpuset.New()
	sockets, cores := machine.groups(groupings[0]), machine.groups(groupings[1])
	for _, grouping := range groupings {
		whole := machine.groups(grouping)
		for out.Size() < n {
			best, ok := bestOf(whole, sockets, cores, free.Difference(out), out, n-out.Size())
			if !ok {
				break
			}
			out = out.Union(best)
		}
	}
	return out
}

// bestOf returns the next group to take, of those that are completely free and not too large.
func bestOf(whole, sockets, cores map[group]cpuset.CPUSet, left, taken cpuset.CPUSet, missing int) (
	best cpuset.CPUSet, ok bool) {
	ranks := make(map[int][]int, len(sockets))
	for g, socket := range sockets {
		ranks[g.Socket] = rankOf(socket, left, taken, missing)
	}
	var least []int
	for g, members := range whole {
		if members.Size() > missing || !members.IsSubsetOf(left) {
			continue
		}
		core := cores[group{g.Socket, g.Core, -1}]
		rank := slices.Concat(ranks[g.Socket], []int{core.Intersection(left).Size(), slices.Min(members.List())})
		if !ok || slices.Compare(rank, least) < 0 {
			best, least, ok = members, rank, true
		}
	}
	return best, ok
}

// rankOf orders sockets, the best first: those from which some CPUs were taken already, then those with room for
// all that is missing, the fullest first, then the emptiest of the others.
func rankOf(socket, left, taken cpuset.CPUSet, missing int) []int {
	room := socket.Intersection(left).Size()
	rank := []int{-socket.Intersection(taken).Size(), 0, room}
	if room < missing {
		rank[1], rank[2] = 1, -room
	}
	return rank
}

// Instance is a running instance of a container; CPUs are its desired CPUs, in the kernel's form.
type Instance struct{ ID, CPUs string }

// untold returns the instances whose CPUs the runtime has not been given yet, ordered by ID.
func untold(running []Instance, told map[string]string) []Instance {
	var out []Instance
	for _, i := range running {
		if has, ok := told[i.ID]; !ok || has != i.CPUs {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b Instance) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
