package columns

// journal remembers the newest changes: a ring of slots in the order in which their nodes changed. It holds at least
// as many entries as there are nodes; a reader who missed more does better to look at every node.
type journal struct {
	ring  []Slot
	next  uint64 // number of changes so far; change i stands at ring[i % len]
	since uint64 // the oldest change that is still in the ring
	gains []Slot // nodes that may have become better since TakeGains
}

const journalMin = 1 << 10

func newJournal() journal { return journal{ring: make([]Slot, journalMin)} }

// note adds a change. It is a gain when a Pod that did not fit before may fit now.
func (j *journal) note(slot Slot, gain bool) {
	j.ring[j.next%uint64(len(j.ring))] = slot
	j.next++
	if j.next-j.since > uint64(len(j.ring)) {
		j.since = j.next - uint64(len(j.ring))
	}
	if gain {
		j.gains = append(j.gains, slot)
	}
}

// fit makes room for n nodes; growing forgets the old entries.
func (j *journal) fit(n int) {
	size := len(j.ring)
	for size < n {
		size *= 2
	}
	if size > len(j.ring) {
		j.ring = make([]Slot, size)
		j.since = j.next
	}
}

// Version counts the changes of nodes so far.
func (s *State) Version() uint64 { return s.journal.next }

// ChangedSince calls visit with the slot of each change after the version, oldest first; a slot may come more than
// once and may be free by now. It returns false, without a call, when the journal no longer reaches back that far.
func (s *State) ChangedSince(version uint64, visit func(Slot)) bool {
	j := &s.journal
	if version < j.since {
		return false
	}
	for ; version < j.next; version++ {
		visit(j.ring[version%uint64(len(j.ring))])
	}
	return true
}

// TakeGains returns the nodes on which a Pod may fit now that did not fit at the last call.
func (s *State) TakeGains() []Slot {
	gains := s.journal.gains
	s.journal.gains = nil
	return gains
}

// Gains counts the nodes that TakeGains would return.
func (s *State) Gains() int { return len(s.journal.gains) }

// ForgetGains forgets the gains after the first so many: what was tried has been taken back, and nothing is better than
// it was.
func (s *State) ForgetGains(after int) { s.journal.gains = s.journal.gains[:after] }
