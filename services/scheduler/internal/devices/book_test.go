package devices

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
)

func named(claims ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"}}
	for _, claim := range claims {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: claim,
			ResourceClaimName: &claim})
	}
	return pod
}

// templated asks for a claim by a template; its status says that it is the one of the name, or that none is needed.
func templated(made *string) *corev1.Pod {
	pod := named()
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("t")}}
	if made != nil {
		status := corev1.PodResourceClaimStatus{Name: "gpu"}
		if *made != "" {
			status.ResourceClaimName = made
		}
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{status}
	}
	return pod
}

func claim(name string, changes ...func(*resourcev1.ResourceClaim)) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	for _, change := range changes {
		change(c)
	}
	return c
}

func allocated(c *resourcev1.ResourceClaim) { c.Status.Allocation = &resourcev1.AllocationResult{} }

func madeFor(uid types.UID) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) {
		pod := named()
		pod.UID = uid
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod,
			corev1.SchemeGroupVersion.WithKind("Pod"))}
	}
}

func leaving(c *resourcev1.ResourceClaim) { c.DeletionTimestamp = ptr.To(metav1.Unix(1, 0)) }

// What counts of a claim is kept of it.
func TestTrim(t *testing.T) {
	for want, c := range map[string]*resourcev1.ResourceClaim{
		podview.Unprepared: claim("gpu", madeFor("p"), allocated),
		"the Pod's ResourceClaim for gpu was made for another Pod": claim("gpu", madeFor("q"), allocated),
		"the Pod's ResourceClaim for gpu is being deleted":         claim("gpu", madeFor("p"), allocated, leaving),
		"the Pod's ResourceClaim for gpu is not allocated, and nobody in this cluster allocates devices": claim("gpu",
			madeFor("p")),
	} {
		c.Labels, c.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
		c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r"}}
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Name: "x"}}
		Trim(c)
		b := New()
		b.SetClaim(c)
		if got := b.Blocked(templated(ptr.To("gpu"))); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if c.Labels != nil || c.Annotations != nil || c.Spec.Devices.Requests != nil || c.Status.ReservedFor != nil {
			t.Errorf("keeps too much: %+v", c)
		}
	}
}

// A Pod of which something else may be said is stale, and what is said of a Pod that is not stale has not changed. What
// is forgotten leaves nothing behind.
func TestStale(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		b, pods, said := New(), map[types.UID]*corev1.Pod{}, map[types.UID]string{}
		for range 200 {
			name := fmt.Sprint("c", r.IntN(3))
			uid := types.UID(fmt.Sprint(r.IntN(4)))
			switch r.IntN(4) {
			case 0:
				changes := []func(*resourcev1.ResourceClaim){allocated, leaving, madeFor(uid)}
				b.SetClaim(claim(name, changes[:r.IntN(4)]...))
			case 1:
				b.RemoveClaim(claim(name))
			case 2:
				p := named(name)
				if r.IntN(2) == 0 {
					p = templated([]*string{nil, ptr.To(""), &name}[r.IntN(3)])
				}
				p.UID = uid
				b.Wait(p)
				pods[uid], said[uid] = p, b.Blocked(p)
			case 3:
				b.Forget(uid)
				delete(pods, uid)
			}
			stale := b.TakeStale()
			for uid, p := range pods {
				if now := b.Blocked(p); now != said[uid] && !slices.Contains(stale, uid) {
					t.Fatalf("seed %d: of %s %q is said after %q, and it is not stale", seed, uid, now, said[uid])
				} else {
					said[uid] = now
				}
			}
		}
		for uid := range pods {
			b.Forget(uid)
		}
		if len(b.pods)+len(b.waits)+len(b.stale) > 0 {
			t.Fatalf("seed %d: %v %v %v are left", seed, b.pods, b.waits, b.stale)
		}
	}
}
