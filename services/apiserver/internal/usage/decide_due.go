package usage

import "time"

const (
	// fresh is how long what a nodeagent said, or that it did not, stands for what it would say.
	fresh = 15 * time.Second
	// old is the age from which a reading is of the past: it is neither shown nor part of a rate.
	old = time.Minute
	// forgotten is how long a node without requests is kept.
	forgotten = 2 * time.Minute
)

// known is what is known of a node, by the clock of the apiserver.
type known struct {
	readings Readings
	// readAt is when the later reading came, askedAt when the agent was asked last, also in vain, wantedAt when a
	// client last requested the readings.
	readAt, askedAt, wantedAt time.Time
	failed                    bool
}

// due reports whether the agent is to be asked again.
func (k *known) due(now time.Time) bool { return now.Sub(k.askedAt) >= fresh }

// idle reports whether no client has requested the readings for long.
func (k *known) idle(now time.Time) bool { return now.Sub(k.wantedAt) >= forgotten }

// usable are the readings to show; none of an agent that did not answer.
func (k *known) usable(now time.Time) (Readings, bool) {
	return k.readings, !k.failed && k.readings.Earlier != nil && now.Sub(k.readAt) < old
}

// take notes what the agent answered and reports whether there has to be another reading for a rate.
func (k *known) take(reading *Reading, now time.Time) (again bool) {
	earlier := k.readings.Later
	if now.Sub(k.readAt) >= old {
		earlier = nil
	}
	k.readings, k.readAt, k.askedAt, k.failed = Readings{Earlier: earlier, Later: reading}, now, now, false
	return earlier == nil
}

// miss notes that the agent was asked in vain. The last reading is kept: the next may still make a rate with it.
func (k *known) miss(now time.Time) { k.askedAt, k.failed = now, true }
