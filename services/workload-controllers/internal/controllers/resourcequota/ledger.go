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
	// overdue is when a Pod stops counting although it still exists.
	overdue time.Time
}

// account is what the objects of a namespace use of one quota.
type account struct {
	spec              *corev1.ResourceQuotaSpec
	counted, released corev1.ResourceList
	charged           corev1.ResourceList
	raised            time.Time
}

// book holds the objects and the quotas of one namespace.
type book struct {
	items    map[types.UID]item
	overdue  map[types.UID]time.Time
	accounts map[string]*account
}

// Ledger keeps the usage of the quotas of all namespaces, updated by each change of an object. It is safe for
// concurrent use.
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

// Open adds or updates a quota.
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
	// The scopes of a quota never change, but the names in its spec.hard do.
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

// Close removes a deleted quota.
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

// Put records the current state of an object. It returns the quotas that the change affects.
func (l *Ledger) Put(namespace string, uid types.UID, i item) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.books[namespace].put(uid, i)
}

// Remove removes a deleted object. It returns the quotas that the change affects.
func (l *Ledger) Remove(namespace string, uid types.UID) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.books[namespace].remove(uid)
}

// Refill replaces all objects of a namespace. It locks the ledger while list runs, so that list never sees an older
// state than the ledger.
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

// Read returns what the ledger knows about a quota. Overdue Pods no longer count.
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

// Settle drops the released amounts that the status now accounts for.
func (l *Ledger) Settle(q *corev1.ResourceQuota, released corev1.ResourceList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.books[q.Namespace]; b != nil && b.accounts[q.Name] != nil {
		subtract(b.accounts[q.Name].released, released)
	}
}

// Specs returns the specs of all quotas.
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

// post updates the accounts after a change of one object's usage.
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
