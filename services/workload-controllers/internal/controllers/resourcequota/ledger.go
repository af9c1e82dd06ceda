package resourcequota

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/quota"
)

// item is what quotas see of one object.
type item struct {
	usage  corev1.ResourceList
	scopes quota.Scopes
	// overdue is when a Pod counts no more though it is still there.
	overdue time.Time
}

// account is what the objects of a namespace take of one quota.
type account struct {
	spec              *corev1.ResourceQuotaSpec
	counted, released corev1.ResourceList
	charged           corev1.ResourceList
	raised            time.Time
}

// book has the objects of one namespace and its quotas.
type book struct {
	items    map[types.UID]item
	overdue  map[types.UID]time.Time
	accounts map[string]*account
}

// Ledger keeps, by what changes, what the objects of namespaces with quotas take of them. It is safe for concurrent
// use.
type Ledger struct {
	mu    sync.Mutex // guards what follows
	books map[string]*book
}

// NewLedger returns a ledger without quotas.
func NewLedger() *Ledger { return &Ledger{books: map[string]*book{}} }

// Keeps reports whether the namespace has a quota.
func (l *Ledger) Keeps(namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.books[namespace] != nil
}

// Open takes in a quota as it is now.
func (l *Ledger) Open(q *corev1.ResourceQuota, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.books[q.Namespace]
	if b == nil {
		b = &book{items: map[types.UID]item{}, overdue: map[types.UID]time.Time{}, accounts: map[string]*account{}}
		l.books[q.Namespace] = b
	}
	a := b.accounts[q.Name]
	if a == nil {
		a = &account{raised: now}
		b.accounts[q.Name] = a
	}
	if rose(a.charged, q.Status.Used) {
		a.raised = now
	}
	a.charged = q.Status.Used
	if a.spec != nil && sameNames(a.spec.Hard, q.Spec.Hard) {
		a.spec = &q.Spec
		return
	}
	// What a quota counts of scopes never changes, but what it counts does.
	a.spec, a.counted, a.released = &q.Spec, corev1.ResourceList{}, corev1.ResourceList{}
	for _, i := range b.items {
		add(a.counted, taken(a.spec, i.usage, i.scopes))
	}
}

func sameNames(a, b corev1.ResourceList) bool {
	for name := range a {
		if _, ok := b[name]; !ok {
			return false
		}
	}
	return len(a) == len(b)
}

// Close forgets a quota that is gone.
func (l *Ledger) Close(q *corev1.ResourceQuota) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.books[q.Namespace]
	if b == nil {
		return
	}
	delete(b.accounts, q.Name)
	if len(b.accounts) == 0 {
		delete(l.books, q.Namespace)
	}
}

// Put takes in an object as it is now, and Remove one that is gone. Both return the quotas that it makes a difference
// to.
func (l *Ledger) Put(namespace string, uid types.UID, i item) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.books[namespace].put(uid, i)
}

// Remove takes out an object that is gone.
func (l *Ledger) Remove(namespace string, uid types.UID) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.books[namespace].remove(uid)
}

// Refill takes in all objects of a namespace. Nothing else is taken in while list looks at them, so that what it has
// seen is not older than what the ledger knows.
func (l *Ledger) Refill(namespace string, list func(visit func(types.UID, item))) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.books[namespace]
	if b == nil {
		return
	}
	seen := map[types.UID]bool{}
	list(func(uid types.UID, i item) {
		seen[uid] = true
		b.put(uid, i)
	})
	for uid := range b.items {
		if !seen[uid] {
			b.remove(uid)
		}
	}
}

// Read returns what is known of a quota. Pods that are overdue count no more.
func (l *Ledger) Read(q *corev1.ResourceQuota, now time.Time) (in Input, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.books[q.Namespace]
	if b == nil || b.accounts[q.Name] == nil {
		return Input{}, false
	}
	in.Now, in.Quota = now, q
	for uid, at := range b.overdue {
		switch {
		case now.After(at):
			b.put(uid, item{usage: quota.Pod(nil, nil, true), scopes: b.items[uid].scopes})
		case in.Overdue.IsZero() || at.Before(in.Overdue):
			in.Overdue = at
		}
	}
	a := b.accounts[q.Name]
	in.Counted, in.Released, in.Raised = a.counted.DeepCopy(), a.released.DeepCopy(), a.raised
	return in, true
}

// Settle drops what was released before and is taken off the quota now.
func (l *Ledger) Settle(q *corev1.ResourceQuota, released corev1.ResourceList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.books[q.Namespace]; b != nil && b.accounts[q.Name] != nil {
		subtract(b.accounts[q.Name].released, released)
	}
}

// Specs are those of all quotas.
func (l *Ledger) Specs() []*corev1.ResourceQuotaSpec {
	l.mu.Lock()
	defer l.mu.Unlock()
	var specs []*corev1.ResourceQuotaSpec
	for _, b := range l.books {
		for _, a := range b.accounts {
			specs = append(specs, a.spec)
		}
	}
	return specs
}

func (b *book) put(uid types.UID, next item) []string {
	if b == nil {
		return nil
	}
	last := b.items[uid]
	b.items[uid] = next
	delete(b.overdue, uid)
	if !next.overdue.IsZero() {
		b.overdue[uid] = next.overdue
	}
	return b.post(last, next)
}

func (b *book) remove(uid types.UID) []string {
	if b == nil {
		return nil
	}
	last := b.items[uid]
	delete(b.items, uid)
	delete(b.overdue, uid)
	return b.post(last, item{})
}

// post enters in the accounts that an object takes something else than before.
func (b *book) post(last, next item) []string {
	var names []string
	for name, a := range b.accounts {
		before, after := taken(a.spec, last.usage, last.scopes), taken(a.spec, next.usage, next.scopes)
		subtract(a.counted, before)
		add(a.counted, after)
		changed := rose(before, after)
		for what, amount := range before {
			if less := minus(amount, after[what]); less.Sign() > 0 {
				add(a.released, corev1.ResourceList{what: less})
				changed = true
			}
		}
		if changed {
			names = append(names, name)
		}
	}
	return names
}
