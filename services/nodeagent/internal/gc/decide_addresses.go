package gc

import (
	"time"

	"keelson.dev/services/nodeagent/internal/observed"
)

// reservation is an address that the network plugin host-local keeps for a sandbox.
type reservation struct {
	// file is the reservation's file; its name is the address.
	file, sandbox string
	since         time.Time
}

// minReservationAge is longer than the runtime may take to create a sandbox, which it lists only after that.
const minReservationAge = 10 * time.Minute

// lostReservations returns the files of reservations for sandboxes that the runtime does not have. pods must have been
// listed before the reservations were.
func lostReservations(reservations []reservation, pods []observed.Pod, now time.Time) []string {
	known := map[string]bool{}
	for i := range pods {
		for _, s := range pods[i].Sandboxes {
			known[s.ID] = true
		}
	}
	var out []string
	for _, r := range reservations {
		if r.sandbox != "" && !known[r.sandbox] && now.Sub(r.since) >= minReservationAge {
			out = append(out, r.file)
		}
	}
	return out
}
