package volumestats

import (
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
	"keelson.dev/services/nodeagent/internal/csivolume"
	"keelson.dev/services/nodeagent/internal/pluginsocket"
)

const (
	// fresh is how long an answer stands before the driver is asked again, and restFactor is how many times the
	// duration of a call the driver is left alone after it, so that a slow driver spends little of its time on answers.
	fresh      = time.Minute
	restFactor = 10
	// stale is the age from which an answer is no longer passed on.
	stale = 15 * time.Minute
)

// Figures are what a driver says about a volume.
type Figures struct {
	// At is when the driver answered.
	At            time.Time
	Bytes, Inodes Amounts
	// Condition is nil if the driver does not say whether the volume is in order.
	Condition *Condition
}

// Amounts are those of one unit. Unknown ones are nil.
type Amounts struct{ Total, Available, Used *uint64 }

// Condition is whether a volume is in order, and the driver's words about that.
type Condition struct {
	Abnormal bool
	Message  string
}

// figuresOf reads an answer. Amounts that cannot be true are left out.
func figuresOf(answer *csi.NodeGetVolumeStatsResponse, conditions bool, at time.Time) Figures {
	out := Figures{At: at}
	for _, usage := range answer.GetUsage() {
		switch usage.GetUnit() {
		case csi.VolumeUsage_BYTES:
			out.Bytes = amountsOf(usage)
		case csi.VolumeUsage_INODES:
			out.Inodes = amountsOf(usage)
		}
	}
	if condition := answer.GetVolumeCondition(); condition != nil && conditions {
		out.Condition = &Condition{Abnormal: condition.GetAbnormal(),
			Message: pluginsocket.Clip(condition.GetMessage())}
	}
	return out
}

// amountsOf reads the amounts of one unit. A driver cannot say that it does not know one: it says 0. So a total of 0 is
// unknown, and so are the others if both are 0, since what is there is either used or available.
func amountsOf(usage *csi.VolumeUsage) Amounts {
	total, available, used := usage.GetTotal(), usage.GetAvailable(), usage.GetUsed()
	if total < 0 || available < 0 || used < 0 {
		return Amounts{}
	}
	var out Amounts
	if total > 0 {
		out.Total = ptr.To(uint64(total))
	}
	if available > 0 || used > 0 {
		out.Available, out.Used = ptr.To(uint64(available)), ptr.To(uint64(used))
	}
	return out
}

// nextAfter returns when a driver that has answered is asked again about the volume.
func nextAfter(asked, answered time.Time) time.Time {
	return answered.Add(max(fresh, restFactor*answered.Sub(asked)))
}

// worsened reports whether a volume has ceased to be in order, or is now out of order in another way.
func worsened(before *Figures, now Figures) bool {
	if now.Condition == nil || !now.Condition.Abnormal {
		return false
	}
	return before == nil || before.Condition == nil || *before.Condition != *now.Condition
}

// place identifies a volume of a Pod by the claim that it is of, or by its own name in the Pod.
type place struct{ uid, claim, name string }

func placeOf(v csivolume.Standing) place {
	if v.Claim != "" {
		return place{uid: string(v.Pod), claim: v.Claim}
	}
	return place{uid: string(v.Pod), name: v.Name}
}

// Answers returns what a driver says about a volume of a Pod; false for a volume of no driver, and if it has said
// nothing.
type Answers func(pod *corev1.Pod, v *corev1.Volume) (Figures, bool)

func answers(known map[place]Figures) Answers {
	return func(pod *corev1.Pod, v *corev1.Volume) (Figures, bool) {
		at := place{uid: string(pod.UID), claim: podview.ClaimName(pod, v)}
		if at.claim == "" {
			if v.CSI == nil {
				return Figures{}, false
			}
			at.name = v.Name
		}
		found, ok := known[at]
		return found, ok
	}
}
