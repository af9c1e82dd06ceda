package pace

import "time"

// A status that differs in figures alone is written at most once in statusPerPod for each Pod of the owner, and at
// least every statusAtLatest: the writes cost a share of what the Pods cost, however many there are.
const (
	statusPerPod   = 100 * time.Microsecond
	statusAtLatest = time.Second
)

// StatusDue returns when the status of an owner of so many Pods may be written again for the sake of its figures.
func StatusDue(written time.Time, pods int32) time.Time {
	return written.Add(min(time.Duration(pods)*statusPerPod, statusAtLatest))
}
