package stats

import "keelson.dev/services/nodeagent/internal/cgroup"

// totals keep a reported total from ever falling. The kernel's own may fall: that of a version 1 cgroup loses the
// part of a removed container, that of a Pod's interface restarts with another sandbox. The previous sum is kept,
// and grows by what the kernel's total grows by from then on.
type totals map[string]map[string]*total // by subject, by figure

type total struct{ kernel, told uint64 }

// grow takes in the kernel's total and returns the one to report.
func (t totals) grow(subject, figure string, kernel uint64) uint64 {
	of := t[subject]
	if of == nil {
		of = map[string]*total{}
		t[subject] = of
	}
	last := of[figure]
	if last == nil {
		last = &total{kernel: kernel, told: kernel}
		of[figure] = last
	}
	last.told += kernel - min(kernel, last.kernel)
	last.kernel = kernel
	return last.told
}

// keep forgets all other subjects.
func (t totals) keep(subjects map[string]bool) {
	for subject := range t {
		if !subjects[subject] {
			delete(t, subject)
		}
	}
}

func (t totals) usage(subject string, u cgroup.Usage) cgroup.Usage {
	for figure, value := range map[string]*uint64{"cpu": &u.CPUNanos, "cpu user": &u.CPUUserNanos,
		"cpu system": &u.CPUSystemNanos, "periods": &u.Periods, "throttled periods": &u.ThrottledPeriods,
		"throttled": &u.ThrottledNanos, "memory failures": &u.MemoryFailures, "page faults": &u.PageFaults,
		"major page faults": &u.MajorFaults} {
		*value = t.grow(subject, figure, *value)
	}
	return u
}

func (t totals) network(subject string, n network) network {
	for i := range n.interfaces {
		of := &n.interfaces[i]
		for figure, value := range map[string]*uint64{"rx bytes": &of.rxBytes, "rx packets": &of.rxPackets,
			"rx errors": &of.rxErrors, "rx dropped": &of.rxDropped, "tx bytes": &of.txBytes,
			"tx packets": &of.txPackets, "tx errors": &of.txErrors, "tx dropped": &of.txDropped} {
			*value = t.grow(subject, of.name+" "+figure, *value)
		}
	}
	return n
}
