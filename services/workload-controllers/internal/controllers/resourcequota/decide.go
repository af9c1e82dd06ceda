package resourcequota

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/kit/quota"
)

const (
	// inFlight is longer than any request to the apiserver lives (60 s) and longer than a watch may lag unnoticed (45
	// s): an object that was charged is seen within it, or was never created.
	inFlight = 2 * time.Minute
	// resync is how often all objects are recounted.
	resync = 5 * time.Minute
	// relook is how often to look for a kind that is not served yet: until it is found, admission lets none of its
	// objects in.
	relook = 10 * time.Second
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Now   time.Time
	Quota *corev1.ResourceQuota
	// Counted is the usage of the existing objects, by every name that can be counted. Released is what objects have
	// released since the last write of the status.
	Counted, Released corev1.ResourceList
	// Raised is when admission last charged the quota, as far as the controller knows.
	Raised time.Time
	// Overdue is when the next Pod stops counting although it still exists; zero if there is no such Pod.
	Overdue time.Time
}

// Plan names every effect of one pass.
type Plan struct {
	// Status is what the status must be.
	Status corev1.ResourceQuotaStatus
	// Wake is when to decide again though nothing changes.
	Wake time.Time
}

// Decide returns what the quota's status must be. Admission charges a quota before the object exists, so a charge
// that is not counted yet may belong to an object on its way: only what objects have released is taken off at once,
// and the rest once no request can be on its way any more. So the quota is never exceeded, even by concurrent
// requests.
func Decide(in Input) Plan {
	plan := Plan{Wake: in.Now.Add(resync)}
	plan.Status = corev1.ResourceQuotaStatus{Hard: in.Quota.Spec.Hard.DeepCopy(), Used: corev1.ResourceList{}}
	quiet := in.Raised.Add(inFlight)
	for name := range in.Quota.Spec.Hard {
		counted, ok := in.Counted[name]
		if !ok {
			if _, kind := quota.Kind(name); kind {
				plan.wakeAt(in.Now.Add(relook))
			}
			continue
		}
		used := counted
		if charged, known := in.Quota.Status.Used[name]; known && in.Now.Before(quiet) {
			if rest := minus(charged, in.Released[name]); rest.Cmp(counted) > 0 {
				used = rest
				plan.wakeAt(quiet)
			}
		}
		plan.Status.Used[name] = used.DeepCopy()
	}
	if !in.Overdue.IsZero() {
		plan.wakeAt(in.Overdue)
	}
	return plan
}

func (p *Plan) wakeAt(t time.Time) {
	if t.Before(p.Wake) {
		p.Wake = t
	}
}

// rose reports whether one of the amounts has grown.
func rose(before, after corev1.ResourceList) bool {
	for name, amount := range after {
		if was, known := before[name]; !known || amount.Cmp(was) > 0 {
			return true
		}
	}
	return false
}

// taken returns how much of a quota an object with this usage takes, by the names in the quota.
func taken(spec *corev1.ResourceQuotaSpec, usage corev1.ResourceList, scopes quota.Scopes) corev1.ResourceList {
	if !scopes.In(spec) {
		return nil
	}
	var of corev1.ResourceList
	for name := range spec.Hard {
		if amount, ok := usage[name]; ok {
			if of == nil {
				of = corev1.ResourceList{}
			}
			of[name] = amount
		}
	}
	return of
}

func minus(a, b resource.Quantity) resource.Quantity {
	rest := a.DeepCopy()
	rest.Sub(b)
	return rest
}

// add adds amounts to a list, and subtract subtracts them; neither changes the original quantities.
func add(to, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		sum := to[name].DeepCopy()
		sum.Add(amount)
		to[name] = sum
	}
}

func subtract(from, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		from[name] = minus(from[name], amount)
	}
}
