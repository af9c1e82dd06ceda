package devices

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
	"keelson.dev/kit/podview/claimtest"
)

// What counts of a claim is kept of it.
func TestTrim(t *testing.T) {
	const unallocated = "the Pod's ResourceClaim for gpu is not allocated, and nobody in this cluster allocates devices"
	for want, c := range map[string]*resourcev1.ResourceClaim{
		podview.Unprepared: claimtest.Claim("gpu", claimtest.MadeFor("p"), claimtest.Allocated),
		"the Pod's ResourceClaim for gpu was made for another Pod": claimtest.Claim("gpu",
			claimtest.MadeFor("q"), claimtest.Allocated),
		"the Pod's ResourceClaim for gpu is being deleted": claimtest.Claim("gpu", claimtest.MadeFor("p"),
			claimtest.Allocated, claimtest.Leaving),
		unallocated: claimtest.Claim("gpu", claimtest.MadeFor("p")),
	} {
		c.Labels, c.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
		c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r"}}
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Name: "x"}}
		Trim(c)
		b := New()
		b.SetClaim(c)
		if got := b.Blocked(claimtest.Templated(ptr.To("gpu"))); got != want {
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
				changes := []func(*resourcev1.ResourceClaim){claimtest.Allocated, claimtest.Leaving,
					claimtest.MadeFor(uid)}
				b.SetClaim(claimtest.Claim(name, changes[:r.IntN(4)]...))
			case 1:
				b.RemoveClaim(claimtest.Claim(name))
			case 2:
				p := claimtest.Claiming(name)
				if r.IntN(2) == 0 {
					p = claimtest.Templated([]*string{nil, ptr.To(""), &name}[r.IntN(3)])
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
