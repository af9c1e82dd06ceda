package usage

import "time"

// leastWindow is the shortest time that a rate is made of: of less the kernel's figures tell too little.
const leastWindow = time.Second

// mostCores is more than any machine has.
const mostCores = 1 << 20

// Node is what the node uses; false if the readings do not tell.
func (r Readings) Node() (Usage, bool) {
	if r.Earlier == nil || r.Later == nil {
		return Usage{}, false
	}
	return rate(r.Earlier.Node, r.Later.Node)
}

// Pod is what the containers of a Pod use, by name: all that the later reading has, or none.
func (r Readings) Pod(name PodName) (map[string]Usage, bool) {
	if r.Earlier == nil || r.Later == nil || len(r.Later.Pods[name]) == 0 {
		return nil, false
	}
	all := make(map[string]Usage, len(r.Later.Pods[name]))
	for container, later := range r.Later.Pods[name] {
		earlier := r.Earlier.Pods[name][container]
		if later.StartedAt.After(r.Earlier.At) {
			earlier = begin(later)
		}
		usage, ok := rate(earlier, later)
		if !ok {
			return nil, false
		}
		all[container] = usage
	}
	return all, true
}

// begin is a container's sample of the moment in which it began.
func begin(s Sample) Sample { return Sample{At: s.StartedAt, hasCPU: true, hasMemory: true} }

// rate is the usage between two samples. There is none of a counter that began again and of a clock that went back.
func rate(earlier, later Sample) (Usage, bool) {
	window := later.At.Sub(earlier.At)
	if !earlier.Complete() || !later.Complete() || window < leastWindow || later.CPU < earlier.CPU {
		return Usage{}, false
	}
	cores := (later.CPU - earlier.CPU) / window.Seconds()
	return Usage{At: later.At, Window: window, Cores: cores, Memory: later.Memory}, cores <= mostCores
}
