package podworker

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// passes are those that workers are making now. Their lock protects nothing else, so that they can be read while
// everything else is stuck.
type passes struct {
	mu    sync.Mutex // guards begun
	begun map[types.UID]time.Time
}

func (p *passes) begin(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun[uid] = time.Now()
}

func (p *passes) end(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.begun, uid)
}

// oldest returns when the longest-running pass began; zero if no pass is running.
func (p *passes) oldest() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	var oldest time.Time
	for _, began := range p.begun {
		if oldest.IsZero() || began.Before(oldest) {
			oldest = began
		}
	}
	return oldest
}

// SyncLoop returns an error if a worker does not finish its pass.
func (p *Pool) SyncLoop() error { return overdue(p.passes.oldest(), time.Now()) }
