package podworker

import (
	"fmt"
	"time"
)

// longestPass is how long a pass may take: it looks, decides and begins what is to be done, which then takes its time
// beside it.
const longestPass = 5 * time.Minute

// overdue says what is wrong if the oldest pass that is under way, zero for none, does not end.
func overdue(oldest, now time.Time) error {
	if oldest.IsZero() || now.Sub(oldest) <= longestPass {
		return nil
	}
	return fmt.Errorf("sync loop took longer than expected: a Pod has been worked on since %s",
		oldest.UTC().Format(time.RFC3339))
}
