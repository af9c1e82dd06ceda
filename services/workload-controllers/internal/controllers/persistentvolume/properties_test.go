package persistentvolume

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/services/workload-controllers/internal/storeindex"
	"keelson.dev/services/workload-controllers/internal/wake"
)

// history plays users, the scheduler and a controller in a random order that a seed reproduces: the controller's
// caches lag, its writes fail before or after they are carried out, and it crashes and another one follows, which
// knows only what the caches show.
type history struct {
	*bench
	r       *rand.Rand
	serial  int
	boundTo map[types.UID]string // every claim's volume, from the first time on
}

func (h *history) name(kind string, among int) string { return fmt.Sprint(kind, h.r.IntN(among)) }

// step does one thing at random.
func (h *history) step() {
	h.serial++
	ctx := h.t.Context()
	switch h.r.IntN(20) {
	case 0, 1, 2:
		c := claim(h.name("c", 4), ofClass([]string{"fast", "fast", "fast", localClass, ""}[h.r.IntN(5)]))
		c.UID = types.UID(fmt.Sprint("u", h.serial))
		if h.r.IntN(6) == 0 {
			c.Spec.VolumeName = h.name("v", 4)
		}
		_ = h.api.Create(ctx, c)
	case 3, 4:
		v := volume(h.name("v", 4), class([]string{"fast", "fast", "fast", ""}[h.r.IntN(4)]))
		v.UID = types.UID(fmt.Sprint("w", h.serial))
		if h.r.IntN(6) == 0 {
			kept(h.name("c", 4), "")(v)
		}
		_ = h.api.Create(ctx, v)
	case 5:
		_ = h.api.Delete(ctx, claim(h.name("c", 4)))
	case 6:
		h.schedule()
	case 7, 8, 9:
		h.catchUp()
	default:
		// What the caches show, in any order.
		var known []reconcile.Request
		for _, c := range storeindex.All[corev1.PersistentVolumeClaim](h.stores.claims) {
			known = append(known, wake.Request(c.Namespace, c.Name))
		}
		for _, v := range storeindex.All[corev1.PersistentVolume](h.stores.volumes) {
			known = append(known, wake.Request("", v.Name))
		}
		if len(known) == 0 {
			return
		}
		slices.SortFunc(known, func(a, b reconcile.Request) int { return strings.Compare(a.String(), b.String()) })
		if _, err := h.pass(known[h.r.IntN(len(known))]); errors.Is(err, errBroken) || h.r.IntN(3) == 0 {
			h.start()
		}
	}
}

// schedule chooses a node for a waiting claim, or a free volume, as the scheduler does.
func (h *history) schedule() {
	ctx := h.t.Context()
	c := &corev1.PersistentVolumeClaim{}
	if h.api.Get(ctx, client.ObjectKey{Namespace: "ns", Name: h.name("c", 4)}, c) != nil || !isWaiting(c) {
		return
	}
	if h.r.IntN(2) == 0 {
		on("n1")(c)
		_ = h.api.Update(ctx, c)
		return
	}
	v := &corev1.PersistentVolume{}
	if h.api.Get(ctx, client.ObjectKey{Name: h.name("v", 4)}, v) == nil && isFree(v) {
		v.Spec.ClaimRef = reference(c)
		byController(v)
		_ = h.api.Update(ctx, v)
	}
}

// check verifies that each volume is bound to at most one claim, and that no claim changes its volume.
func (h *history) check() {
	h.t.Helper()
	var claims corev1.PersistentVolumeClaimList
	if err := h.api.List(h.t.Context(), &claims); err != nil {
		h.t.Fatal(err)
	}
	holder := map[string]string{}
	for i := range claims.Items {
		c := &claims.Items[i]
		if before := h.boundTo[c.UID]; before != "" && before != c.Spec.VolumeName {
			h.t.Fatalf("claim %s had %s and has %s: %s", c.Name, before, c.Spec.VolumeName, h.state())
		}
		if !isBindingComplete(c) {
			continue
		}
		h.boundTo[c.UID] = c.Spec.VolumeName
		v := &corev1.PersistentVolume{}
		if err := h.api.Get(h.t.Context(), client.ObjectKey{Name: c.Spec.VolumeName}, v); apierrors.IsNotFound(err) {
			h.t.Fatalf("claim %s has lost its volume: %s", c.Name, h.state())
		}
		if other := holder[v.Name]; other != "" || v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID != c.UID {
			h.t.Fatalf("claims %q and %q have one volume: %s", other, c.Name, h.state())
		}
		holder[v.Name] = c.Name
	}
}

// No two claims ever have the same volume, and no claim has two, whatever fails; and once nothing fails any more,
// bindings agree on both sides, and no claim waits while a volume suits it.
func TestOneClaimOneVolume(t *testing.T) {
	for seed := range uint64(40) {
		h := &history{r: rand.New(rand.NewPCG(seed, 8)), boundTo: map[types.UID]string{},
			bench: newBench(t, storageClass("fast", "disk.example.com"), local(), node("n1"))}
		failing := true
		h.refuse = func(string) (before, after error) {
			switch {
			case failing && h.r.IntN(6) == 0:
				return errBroken, nil
			case failing && h.r.IntN(6) == 0:
				return nil, errBroken
			}
			return nil, nil
		}
		for range 80 {
			h.step()
			h.check()
		}
		failing = false
		h.settle()
		h.check()
		h.checkEnd(seed)
	}
}

// checkEnd verifies that nothing is left half done.
func (h *history) checkEnd(seed uint64) {
	h.t.Helper()
	h.catchUp()
	for _, v := range storeindex.All[corev1.PersistentVolume](h.stores.volumes) {
		ref := v.Spec.ClaimRef
		if ref == nil || ref.UID == "" {
			continue
		}
		c := storeindex.Get[corev1.PersistentVolumeClaim](h.stores.claims, storeindex.Key(ref.Namespace, ref.Name))
		there := c != nil && c.UID == ref.UID
		if there && (c.Spec.VolumeName != v.Name || v.Status.Phase != corev1.VolumeBound ||
			c.Status.Phase != corev1.ClaimBound) || !there && v.Status.Phase != corev1.VolumeReleased {
			h.t.Errorf("seed %d: volume %s is half bound: %s", seed, v.Name, h.state())
		}
	}
	for _, c := range storeindex.All[corev1.PersistentVolumeClaim](h.stores.claims) {
		for _, v := range storeindex.All[corev1.PersistentVolume](h.stores.volumes) {
			if isWaiting(c) && classOf(c) != localClass && isFree(v) && suits(v, c) {
				h.t.Errorf("seed %d: claim %s waits for %s: %s", seed, c.Name, v.Name, h.state())
			}
		}
	}
}
