package resourceclaim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// serving gives a claim a device and reserves it for Pods of these UIDs.
func serving(uids ...types.UID) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) {
		c.Status.Allocation = &resourcev1.AllocationResult{}
		for _, uid := range uids {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{
				Resource: "pods", Name: "pod-" + string(uid), UID: uid})
		}
	}
}

func protected(c *resourcev1.ResourceClaim) {
	c.Finalizers = append(c.Finalizers, "other", resourcev1.Finalizer)
}

// servingOther reserves the claim for a consumer that is no Pod.
func servingOther(c *resourcev1.ResourceClaim) {
	c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{APIGroup: "x.io",
		Resource: "pods", Name: "x", UID: "1"})
}

func TestDecideClaim(t *testing.T) {
	for name, row := range map[string]struct {
		changes    []func(*resourcev1.ResourceClaim)
		ended      []types.UID
		ownerEnded bool

		left              []types.UID
		allocated         bool
		unprotect, delete bool
	}{
		"for nobody": {},
		"for one": {changes: []func(*resourcev1.ResourceClaim){serving("1"), protected},
			left: []types.UID{"1"}, allocated: true},
		"one of two has ended": {changes: []func(*resourcev1.ResourceClaim){serving("1", "2"), protected},
			ended: []types.UID{"1"}, left: []types.UID{"2"}, allocated: true},
		"all have ended": {changes: []func(*resourcev1.ResourceClaim){serving("1", "2"), protected},
			ended: []types.UID{"1", "2"}, unprotect: true},
		"all have ended, not ours": {changes: []func(*resourcev1.ResourceClaim){serving("1")},
			ended: []types.UID{"1"}, allocated: true},
		"allocated, for nobody yet": {changes: []func(*resourcev1.ResourceClaim){serving(), protected},
			allocated: true},
		"to be allocated": {changes: []func(*resourcev1.ResourceClaim){protected}},
		"what is no Pod": {changes: []func(*resourcev1.ResourceClaim){serving(), servingOther,
			protected}, ended: []types.UID{"1"}, left: []types.UID{"1"}, allocated: true},
		"it goes": {changes: []func(*resourcev1.ResourceClaim){serving(), protected, leaving},
			unprotect: true},
		"it goes without a device": {changes: []func(*resourcev1.ResourceClaim){protected, leaving},
			unprotect: true},
		"it goes while in use": {changes: []func(*resourcev1.ResourceClaim){serving("1"), protected, leaving},
			left: []types.UID{"1"}, allocated: true},
		"it goes unprotected": {changes: []func(*resourcev1.ResourceClaim){serving(), leaving},
			allocated: true},
		"its Pod has ended":          {ownerEnded: true, delete: true},
		"its Pod has ended, it goes": {changes: []func(*resourcev1.ResourceClaim){leaving}, ownerEnded: true},
		"its Pod has ended, another not": {changes: []func(*resourcev1.ResourceClaim){serving("1")}, ownerEnded: true,
			left: []types.UID{"1"}, allocated: true},
		"both have ended": {changes: []func(*resourcev1.ResourceClaim){serving("1"), protected},
			ended: []types.UID{"1"}, ownerEnded: true, unprotect: true, delete: true},
	} {
		in := ClaimInput{Claim: claimOf("a", "gpu", row.changes...), Ended: map[types.UID]bool{},
			OwnerEnded: row.ownerEnded}
		for _, uid := range row.ended {
			in.Ended[uid] = true
		}
		before := in.Claim.DeepCopy()
		plan := DecideClaim(in)
		var left []types.UID
		for _, consumer := range plan.Status.ReservedFor {
			left = append(left, consumer.UID)
		}
		if !slices.Equal(left, row.left) || (plan.Status.Allocation != nil) != row.allocated ||
			plan.Unprotect != row.unprotect || plan.Delete != row.delete {
			t.Errorf("%s: %+v", name, plan)
		}
		if !apiequality.Semantic.DeepEqual(in.Claim, before) {
			t.Errorf("%s: the claim was changed", name)
		}
	}
}

func TestHasEnded(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"waits": {func(*corev1.Pod) {}, false},
		"runs": {func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n", corev1.PodRunning },
			false},
		"succeeded": {func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n", corev1.PodSucceeded },
			true},
		"failed": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		"is ending on a node": {func(p *corev1.Pod) { p.Spec.NodeName, p.DeletionTimestamp = "n", &metav1.Time{} },
			false},
		"will never be placed": {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, true},
	} {
		if got := hasEnded(newPod(row.change)); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// No Pod that may run ever loses a claim, no reserved claim loses its devices or is deleted, and a plan that has
// been carried out leaves nothing to decide.
func TestNobodyLosesAClaim(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		in := ClaimInput{Claim: claimOf("a", "gpu"), Ended: map[types.UID]bool{}, OwnerEnded: r.IntN(2) == 0}
		live := 0
		for i := range r.IntN(4) {
			uid := types.UID(fmt.Sprint(i))
			serving(uid)(in.Claim)
			if r.IntN(2) == 0 {
				in.Ended[uid] = true
			} else {
				live++
			}
		}
		for _, change := range []func(*resourcev1.ResourceClaim){protected, leaving, serving()} {
			if r.IntN(2) == 0 {
				change(in.Claim)
			}
		}
		plan := DecideClaim(in)
		if len(plan.Status.ReservedFor) != live {
			t.Fatalf("%+v: %d of %d are left", in, len(plan.Status.ReservedFor), live)
		}
		if live > 0 && (plan.Status.Allocation == nil || plan.Unprotect || plan.Delete) {
			t.Fatalf("%+v: %+v", in, plan)
		}
		if plan.Unprotect && plan.Status.Allocation != nil {
			t.Fatalf("%+v may go with its devices", in)
		}
		next := in
		next.Claim = in.Claim.DeepCopy()
		next.Claim.Status = plan.Status
		if plan.Unprotect {
			next.Claim.Finalizers = nil
		}
		if again := DecideClaim(next); !apiequality.Semantic.DeepEqual(again.Status, plan.Status) || again.Unprotect ||
			again.Delete != plan.Delete {
			t.Fatalf("%+v: after %+v comes %+v", in, plan, again)
		}
	}
}
