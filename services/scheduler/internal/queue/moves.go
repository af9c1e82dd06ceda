package queue

// Move is how entries come to a place.
type Move struct {
	Place Place
	// Event says why, in the field's word.
	Event string
}

// move is the index of a Move.
type move int

const (
	added move = iota
	refused
	delayed
	fits
	fitsLater
	delayOver
	overlong
	overlongLater
)

// moves are all moves: an entry is new or changed, a try of it has failed, a node can take it, its delay is over, or it
// was unschedulable for so long that it is tried again. An entry that only passes through a line does not move.
var moves = [...]Move{
	added:         {Active, "PodAdd"},
	refused:       {Unschedulable, "ScheduleAttemptFailure"},
	delayed:       {Backoff, "ScheduleAttemptFailure"},
	fits:          {Active, "NodeFits"},
	fitsLater:     {Backoff, "NodeFits"},
	delayOver:     {Active, "BackoffComplete"},
	overlong:      {Active, "UnschedulableTimeout"},
	overlongLater: {Backoff, "UnschedulableTimeout"},
}

// Moves returns how many entries have moved so since there is a Queue.
func (q *Queue) Moves() map[Move]uint64 {
	all := make(map[Move]uint64, len(moves))
	for i, n := range q.moved {
		all[moves[i]] = n
	}
	return all
}
