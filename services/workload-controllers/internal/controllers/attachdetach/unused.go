package attachdetach

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// unused remembers since when no Pod has used an attachment. It starts afresh with each term of leadership: time
// in which no controller looked does not count. It is safe for concurrent use.
type unused struct {
	mu sync.Mutex // guards since
	// since is indexed by node and attachment.
	since map[string]map[types.UID]time.Time
}

func newUnused() *unused { return &unused{since: map[string]map[types.UID]time.Time{}} }

// note fills in since when the attachments have no users, and forgets those that have some or are gone.
func (u *unused) note(in *NodeInput) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, now := u.since[in.Name], map[types.UID]time.Time{}
	for i := range in.Attachments {
		a := &in.Attachments[i]
		if len(a.Users) > 0 {
			continue
		}
		since, known := before[a.Object.UID]
		if !known {
			since = in.Now
		}
		a.Unused, now[a.Object.UID] = since, since
	}
	if u.since[in.Name] = now; len(now) == 0 {
		delete(u.since, in.Name)
	}
}
