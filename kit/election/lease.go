package election

import (
	"context"
	"encoding/json"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
)

// preferredAnnotation of a Lease names a preferred candidate that asked for it or took it.
const preferredAnnotation = "election.keelson.dev/preferred"

// leaseLock reads and writes a role's Lease for client-go's elector, as resourcelock.LeaseLock does, and says in the
// same writes whether the Lease is left to preferred candidates. One goroutine uses it.
type leaseLock struct {
	leases   coordinationv1client.LeaseInterface
	role     string
	identity string
	fallback bool
	lease    *coordinationv1.Lease // as it was last read or written
}

var _ resourcelock.Interface = &leaseLock{}

// Get implements resourcelock.Interface.
func (l *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	lease, err := l.leases.Get(ctx, l.role, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	l.lease = lease
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	raw, err := json.Marshal(record)
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *leaseLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: l.role},
		Spec:       resourcelock.LeaderElectionRecordToLeaseSpec(&record),
	}
	l.mark(lease)
	lease, err := l.leases.Create(ctx, lease, metav1.CreateOptions{})
	if err == nil {
		l.lease = lease
	}
	return err
}

// Update implements resourcelock.Interface. It follows a Get or a write: an older version of the Lease is refused.
func (l *leaseLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	lease := l.lease.DeepCopy()
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
	if taken := record.HolderIdentity == l.identity && l.view().holder != l.identity; taken {
		l.mark(lease)
	}
	return l.write(ctx, lease)
}

// ask leaves the Lease as it is, and to preferred candidates as soon as its holder knows.
func (l *leaseLock) ask(ctx context.Context) error {
	lease := l.lease.DeepCopy()
	l.mark(lease)
	return l.write(ctx, lease)
}

func (l *leaseLock) write(ctx context.Context, lease *coordinationv1.Lease) error {
	lease, err := l.leases.Update(ctx, lease, metav1.UpdateOptions{})
	if err == nil {
		l.lease = lease
	}
	return err
}

// mark says what kind of candidate writes.
func (l *leaseLock) mark(lease *coordinationv1.Lease) {
	if l.fallback {
		delete(lease.Annotations, preferredAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, preferredAnnotation, l.identity)
}

// view is what the Lease said when it was last read or written.
func (l *leaseLock) view() view {
	return view{holder: ptr.Deref(l.lease.Spec.HolderIdentity, ""),
		preferred: l.lease.Annotations[preferredAnnotation], version: l.lease.ResourceVersion}
}

// RecordEvent implements resourcelock.Interface: Leases have no Events here.
func (l *leaseLock) RecordEvent(string) {}

// Identity implements resourcelock.Interface.
func (l *leaseLock) Identity() string { return l.identity }

// Describe implements resourcelock.Interface.
func (l *leaseLock) Describe() string { return fmt.Sprintf("%s/%s", Namespace, l.role) }
