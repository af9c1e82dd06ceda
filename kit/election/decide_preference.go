package election

import "time"

const (
	// settling is how long a preferred candidate has stood before it asks for a Lease: one that ends as soon as it has
	// started takes nothing from a copy that works.
	settling = 10 * time.Second
	// vacancy is how long a Lease that was given up is left to preferred candidates, of which one that runs looks
	// every 4 s.
	vacancy = 20 * time.Second
	// absence is how long a Lease that a preferred candidate held, or asked for, is left to them without any sign of
	// one: long enough for a container that is started again.
	absence = 45 * time.Second
	// glance is how often a fallback looks at a Lease that it leaves to others.
	glance = 5 * time.Second
	// inattention is how long a fallback may not have looked without starting over: while the apiserver is away, or the
	// fallback sleeps, it sees no renewal.
	inattention = 3 * glance
)

// view is what a Lease says.
type view struct {
	// holder is empty where the Lease was given up.
	holder string
	// preferred is who asked for the Lease, or took it, before other candidates: from then on it is left to candidates
	// of that kind. A fallback that takes it nevertheless takes that back.
	preferred string
	// version changes with each write.
	version string
}

// candidacy is what a process keeps in mind of a role for which it stands.
type candidacy struct {
	identity string
	fallback bool
	// begun is when it began to stand, by the elector's clock as all times here.
	begun time.Duration
	// version is that of the Lease as it was seen last, at the time looked; it has been so since the time since.
	version       string
	since, looked time.Duration
}

// see notes what the Lease said at a moment. On a machine that needs stretch times as long for everything, looks are as
// much further apart.
func (c *candidacy) see(lease view, now time.Duration, stretch int) {
	if lease.version != c.version || now-c.looked > time.Duration(stretch)*inattention {
		c.version, c.since = lease.version, now
	}
	c.looked = now
}

// mayStand reports whether the process may hold the Lease that it has just seen, or take it once it is free. A
// fallback that leads may not from when it sees that it was asked: the Lease has just changed.
func (c *candidacy) mayStand(lease view, stretch int) bool {
	unchanged := c.looked - c.since
	switch {
	case !c.fallback, lease.preferred == "":
		return true
	case lease.holder == "":
		return unchanged >= time.Duration(stretch)*vacancy
	}
	return unchanged >= time.Duration(stretch)*absence
}

// asks reports whether the process is to say that it is preferred to the holder of the Lease.
func (c *candidacy) asks(lease view) bool {
	return !c.fallback && lease.preferred == "" && lease.holder != "" && lease.holder != c.identity &&
		c.looked-c.begun >= settling
}
