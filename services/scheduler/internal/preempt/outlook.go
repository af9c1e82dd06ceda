package preempt

import (
	"strings"

	"keelson.dev/services/scheduler/internal/columns"
)

// stays says why Pods of lower priority stay.
func stays(r trialResult) string {
	if !r.bound {
		return ""
	}
	return " (some stay: their pod group is disrupted as a whole, and not all of it has a lower priority)"
}

// Outlook calls each with every node and what taking the room of others comes to there: nothing where the node helps,
// else why it does not.
func (s *Search) Outlook(p Preemptor, each func(slot columns.Slot, why string)) {
	for slot := range columns.Slot(s.state.Slots()) {
		if !s.state.Known(slot) {
			continue
		}
		switch r := s.try(p, slot); r.outcome {
		case useless:
			each(slot, NotHelpful)
		case victimless:
			each(slot, NoVictims+stays(r))
		case refused:
			each(slot, "even without all Pods of lower priority: "+strings.Join(p.Class.Texts(r.refusal), ", ")+
				stays(r))
		case helps:
			each(slot, "")
		}
	}
}
