package election

import "time"

const (
	// mostStretch is how many times longer than planned everything about a Lease may take on a slow machine.
	mostStretch = 4
	// calm is for how long all answers must have come soon before a stretch becomes shorter.
	calm = time.Minute
)

// pace is how much longer than planned Leases last and are renewed, by how long the apiserver took for answers. Without
// it, a machine too slow for the plan loses all Leases at once, and the work of standing again, starting again and
// giving the Lease up keeps it as slow.
type pace struct {
	// stretch is 1, 2 or 4.
	stretch int
	// changed is when it became so, late when an answer last took long.
	changed, late time.Duration
}

// after is the pace once a request for a Lease has ended. Times are those of the elector's clock. What says that the
// apiserver is gone says nothing about how fast it is.
func (p pace) after(sent, ended time.Duration, failed bool, planned Timing) pace {
	took, step := ended-sent, time.Duration(p.stretch)*planned.RetryPeriod
	switch {
	case took >= step:
		p.late = ended
		// All roles ask at the same moment: what they see together makes it longer once.
		if sent >= p.changed && p.stretch < mostStretch {
			p.stretch, p.changed = 2*p.stretch, ended
		}
	case failed:
	case took >= step/4:
		p.late = ended
	case p.stretch > 1 && ended-max(p.late, p.changed) >= calm:
		p.stretch, p.changed = p.stretch/2, ended
	}
	return p
}

// stretched is the timing at that stretch.
func (t Timing) stretched(by int) Timing {
	times := time.Duration(by)
	return Timing{LeaseDuration: times * t.LeaseDuration, RenewDeadline: times * t.RenewDeadline,
		RetryPeriod: times * t.RetryPeriod}
}
