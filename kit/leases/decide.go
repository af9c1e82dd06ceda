package leases

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

// look is what a Lease said at one moment.
type look struct {
	holder  string
	renewed time.Time
}

// lookOf reads a Lease.
func lookOf(lease *coordinationv1.Lease) look {
	return look{ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.RenewTime, none).Time}
}

// complaint says why a Lease that was read twice is not held and renewed; empty if it is. It uses no clock but the
// holders': a holder that renews writes another time.
func complaint(first, last look) string {
	switch {
	case last.holder == "":
		return "nobody holds it"
	case !last.renewed.After(first.renewed):
		return fmt.Sprintf("%s holds it and does not renew it", last.holder)
	}
	return ""
}
