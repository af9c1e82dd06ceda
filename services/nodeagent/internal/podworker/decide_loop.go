package podworker

import (
	"fmt"
	"time"
)

// longestPass is how long a pass may take: it observes, decides and starts operations, which run in goroutines of
// their own.
const longestPass = 5 * time.Minute

// overdue returns an error if oldest, when the longest-running pass began, is too long ago; zero means that none
// runs.
func overdue(oldest, now time.Time) error {
	if oldest.IsZero() || now.Sub(oldest) <= longestPass {
		return nil
	}
	return fmt.Errorf("sync loop took longer than expected: a Pod has been worked on since %s",
		oldest.UTC().Format(time.RFC3339))
}
