package componentstatus

import (
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/seconds"
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Now time.Time
	// Store is why the store does not answer; nil: it does.
	Store error
	// Leases are those of the namespace in which daemons hold theirs, one for each part of their work.
	Leases []coordinationv1.Lease
}

// Decide returns for each component, by name, whether it is healthy: the store if it answers, a daemon if a process
// holds one of its Leases. Where the daemons run, and whether in one process or several, does not matter.
func Decide(in Input) []corev1.ComponentStatus {
	return []corev1.ComponentStatus{
		component("controller-manager", unled(in, "workload-controllers")),
		component("etcd-0", in.Store),
		component("scheduler", unled(in, "scheduler")),
	}
}

// component is well unless something is the matter.
func component(name string, matter error) corev1.ComponentStatus {
	condition := corev1.ComponentCondition{Type: corev1.ComponentHealthy, Status: corev1.ConditionTrue, Message: "ok"}
	if matter != nil {
		condition.Status, condition.Message, condition.Error = corev1.ConditionFalse, "", matter.Error()
	}
	return corev1.ComponentStatus{ObjectMeta: metav1.ObjectMeta{Name: name},
		Conditions: []corev1.ComponentCondition{condition}}
}

// unled returns an error if no process holds a Lease of the daemon; nil if one does.
func unled(in Input, daemon string) error {
	var latest *coordinationv1.Lease
	for i := range in.Leases {
		lease := &in.Leases[i]
		if !strings.HasPrefix(lease.Name, daemon+".") || lease.Spec.RenewTime == nil {
			continue
		}
		if isHeld(&lease.Spec, in.Now) {
			return nil
		}
		if latest == nil || lease.Spec.RenewTime.After(latest.Spec.RenewTime.Time) {
			latest = lease
		}
	}
	if latest == nil {
		return fmt.Errorf("%s holds no Lease: there is none named %s.*", daemon, daemon)
	}
	return fmt.Errorf("%s holds no Lease: the last one, %s, was renewed at %s", daemon, latest.Name,
		latest.Spec.RenewTime.UTC().Format(time.RFC3339))
}

// isHeld reports whether a Lease that has been renewed names a holder and has not expired.
func isHeld(lease *coordinationv1.LeaseSpec, now time.Time) bool {
	return lease.HolderIdentity != nil && *lease.HolderIdentity != "" && lease.LeaseDurationSeconds != nil &&
		!now.After(lease.RenewTime.Add(seconds.Of(*lease.LeaseDurationSeconds)))
}
