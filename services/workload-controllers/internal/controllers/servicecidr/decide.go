package servicecidr

import (
	"net/netip"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/conditions"
)

const (
	// finalizer keeps a ServiceCIDR whose addresses are in use.
	finalizer = "networking.k8s.io/service-cidr-finalizer"
	// notice is how long the apiservers have to notice that they must allocate no more addresses.
	notice = 10 * time.Second
	// lookAgain is how long a ServiceCIDR whose addresses are in use waits for the next look.
	lookAgain = 10 * time.Second

	reasonReady = "Ready"
	stillUsed   = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new " +
		"ServiceCIDR"
)

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Range *networkingv1.ServiceCIDR
	// Others are all other ServiceCIDRs.
	Others []*networkingv1.ServiceCIDR
	// Addresses are the addresses in use. They are read only if the decision asks for them.
	Addresses []netip.Addr
	Now       time.Time
}

// Plan is what one pass does.
type Plan struct {
	// Hold adds the finalizer, Release removes it; the pass does nothing else then.
	Hold, Release bool
	Status        networkingv1.ServiceCIDRStatus
	// InUse are the addresses in use that no other ServiceCIDR contains.
	InUse []netip.Addr
	// After is when to look again; 0: when something changes.
	After time.Duration
}

// asksForAddresses reports whether the decision depends on the addresses.
func asksForAddresses(r *networkingv1.ServiceCIDR, now time.Time) bool {
	return r.DeletionTimestamp != nil && slices.Contains(r.Finalizers, finalizer) &&
		!now.Before(r.DeletionTimestamp.Add(notice))
}

// Decide returns what a ServiceCIDR needs. It becomes ready only once it has the finalizer, so that a ServiceCIDR in
// use cannot vanish.
func Decide(in Input) Plan {
	r := in.Range
	held := slices.Contains(r.Finalizers, finalizer)
	plan := Plan{Status: *r.Status.DeepCopy()}
	switch {
	case r.DeletionTimestamp == nil && !held:
		plan.Hold = true
		return plan
	case r.DeletionTimestamp == nil:
		plan.set(metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonReady,
			Message: "Kubernetes Service CIDR is ready"}, in)
		return plan
	case !held:
		return plan
	}
	plan.set(metav1.Condition{Status: metav1.ConditionFalse, Reason: networkingv1.ServiceCIDRReasonTerminating,
		Message: stillUsed}, in)
	if !asksForAddresses(r, in.Now) {
		plan.After = r.DeletionTimestamp.Add(notice).Sub(in.Now)
		return plan
	}
	own, others := prefixes(r), []netip.Prefix(nil)
	for _, other := range in.Others {
		if other.DeletionTimestamp == nil {
			others = append(others, prefixes(other)...)
		}
	}
	for _, ip := range in.Addresses {
		if within(own, ip) && !within(others, ip) {
			plan.InUse = append(plan.InUse, ip)
		}
	}
	if len(plan.InUse) > 0 {
		plan.After = lookAgain
		return plan
	}
	plan.Release = true
	return plan
}

// set sets the condition Ready. It keeps the condition that the apiserver gave the default ServiceCIDR.
func (p *Plan) set(c metav1.Condition, in Input) {
	c.Type, c.ObservedGeneration = networkingv1.ServiceCIDRConditionReady, in.Range.Generation
	if have := conditions.Standard.Find(p.Status.Conditions, c.Type); have != nil && have.Status == c.Status {
		return
	}
	p.Status.Conditions, _ = conditions.Standard.Set(p.Status.Conditions, c, in.Now)
}

func prefixes(r *networkingv1.ServiceCIDR) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range r.Spec.CIDRs {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			all = append(all, prefix)
		}
	}
	return all
}

func within(ranges []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(ip) })
}
