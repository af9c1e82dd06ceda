package persistentvolume

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/localvolume"
	"keelson.dev/services/workload-controllers/internal/storeindex"
	"keelson.dev/services/workload-controllers/internal/wake"
)

var errNotFound = apierrors.NewNotFound(corev1.Resource("objects"), "it")

var errBroken = errors.New("the apiserver does not answer")

// SET-024: binding takes no more writes than there are changes.
func TestBinding(t *testing.T) {
	b := newBench(t, storageClass("fast", "disk.example.com"), volume("v"), claim("a"))
	if _, err := b.pass(wake.Request("ns", "a")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"update v", "update a", "status a"}; !slices.Equal(b.writes, want) {
		t.Errorf("wrote %v, want %v", b.writes, want)
	}
	b.settle()
	c, v := b.claim("a"), b.volume("v")
	if c.Spec.VolumeName != "v" || c.Status.Phase != "Bound" || v.Spec.ClaimRef.UID != "uid-a" ||
		v.Status.Phase != "Bound" || !v.Status.LastPhaseTransitionTime.Time.Equal(now) {
		t.Errorf("the claim is %+v, the volume %+v, %+v", c, v.Spec.ClaimRef, v.Status)
	}
	written := len(b.writes)
	b.settle()
	if len(b.writes) != written {
		t.Errorf("a settled pair is written: %v", b.writes[written:])
	}
}

// The next controller completes what a crash between any two writes left undone.
func TestCrashes(t *testing.T) {
	objects := []client.Object{storageClass("fast", "disk.example.com"), local(), node("n1"), volume("v"), volume("w"),
		claim("a"), claim("b", ofClass(localClass), on("n1"))}
	for at := range 12 {
		for _, done := range []bool{false, true} {
			copies := make([]client.Object, 0, len(objects))
			for _, o := range objects {
				copies = append(copies, o.DeepCopyObject().(client.Object))
			}
			b := newBench(t, copies...)
			writes := 0
			b.refuse = func(string) (before, after error) {
				if writes++; writes != at+1 {
					return nil, nil
				} else if done {
					return nil, errBroken
				}
				return errBroken, nil
			}
			b.settle()
			const want = "a(uid-a)->v Bound; b(uid-b)->pvc-uid-b Bound; " +
				"pvc-uid-b->b(uid-b) Bound; v->a(uid-a) Bound; w-> Available; "
			if got := b.state(); got != want {
				t.Errorf("the write %d fails, done %t: %s", at, done, got)
			}
		}
	}
}

// A controller whose cache does not show its predecessor's volume creates no second one.
func TestBehind(t *testing.T) {
	b := newBench(t, local(), node("n1"), claim("b", ofClass(localClass), on("n1")))
	made := localVolume(ClaimInput{Claim: b.claim("b"), Class: local(), Node: node("n1")})
	if err := b.api.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if result, err := b.pass(wake.Request("ns", "b")); err != nil || result.RequeueAfter == 0 {
		t.Errorf("behind: %v, %v, want another look", result, err)
	}
	b.settle()
	if got := b.state(); got != "b(uid-b)->pvc-uid-b Bound; pvc-uid-b->b(uid-b) Bound; " {
		t.Error(got)
	}
	foreign := newBench(t, local(), node("n1"), claim("b", ofClass(localClass), on("n1")), volume("pvc-uid-b"))
	if _, err := foreign.pass(wake.Request("ns", "b")); err == nil ||
		!strings.Contains(err.Error(), "of somebody else") || foreign.claim("b").Spec.VolumeName != "" {
		t.Errorf("a volume of somebody else: %v", err)
	}
}

// SET-055: a volume is released, and deleted if its class says so, only once the apiserver confirms that the claim
// is gone.
func TestReclaim(t *testing.T) {
	held := []client.Object{volume("v", kept("a", "uid-a"), phase("Bound")),
		volume("f", kept("b", "uid-b"), folder, phase("Bound")), claim("a", naming("v"), complete),
		claim("b", naming("f"), complete)}
	b := newBench(t, held...)
	for _, c := range storeindex.All[corev1.PersistentVolumeClaim](b.stores.claims) {
		if err := b.stores.claims.Delete(c); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"v", "f"} {
		if _, err := b.pass(wake.Request("", name)); err != nil || len(b.writes) > 0 {
			t.Errorf("the cache misses a claim: %v, wrote %v", err, b.writes)
		}
	}
	for _, name := range []string{"a", "b"} {
		if err := b.api.Delete(t.Context(), b.claim(name)); err != nil {
			t.Fatal(err)
		}
	}
	b.writes = nil
	b.settle()
	if got := b.state(); got != "f->b(uid-b) Released; v->a(uid-a) Released; " ||
		b.volume("f").DeletionTimestamp == nil || b.volume("v").DeletionTimestamp != nil {
		t.Errorf("%s, wrote %v", got, b.writes)
	}
	// The next claim of the same name is a different claim.
	if err := b.api.Create(t.Context(), claim("a", ofClass(""), func(c *corev1.PersistentVolumeClaim) {
		c.UID = "later"
	})); err != nil {
		t.Fatal(err)
	}
	b.settle()
	if got := b.volume("v"); got.Status.Phase != "Released" || got.Spec.ClaimRef.UID != "uid-a" {
		t.Errorf("what is left of another claim's data is given away: %+v", got)
	}
}

// The folder of a deleted node is gone too. The apiserver confirms the deletion, and only volumes that are being
// deleted lose their finalizer.
func TestNodeGone(t *testing.T) {
	going := func(name string) *corev1.PersistentVolume { return volume(name, kept("a", "uid-a"), folder, ending) }
	b := newBench(t, going("v"), node("n1"))
	b.settle()
	if !slices.Contains(b.volume("v").Finalizers, localvolume.FolderFinalizer) {
		t.Fatal("the node is there, its volume let go")
	}
	if err := b.api.Delete(t.Context(), node("n1")); err != nil {
		t.Fatal(err)
	}
	b.settle()
	if slices.Contains(b.volume("v").Finalizers, localvolume.FolderFinalizer) {
		t.Errorf("the node is gone, its volume waits for it: %v", b.volume("v").Finalizers)
	}
	if len(b.events) != 1 || !strings.Contains(b.events[0], "Node n1 is gone") {
		t.Errorf("told %q", b.events)
	}
}

// Data counts as lost only if the apiserver confirms it.
func TestLost(t *testing.T) {
	b := newBench(t, claim("a", naming("v"), complete), volume("v", kept("a", "uid-a")))
	if err := b.stores.volumes.Delete(b.volume("v")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.pass(wake.Request("ns", "a")); err != nil || b.claim("a").Status.Phase != "Bound" {
		t.Errorf("the cache misses the volume: %s, %v", b.state(), err)
	}
	if err := b.api.Delete(context.Background(), b.volume("v")); err != nil {
		t.Fatal(err)
	}
	b.settle()
	if b.claim("a").Status.Phase != "Lost" {
		t.Errorf("the volume is gone: %s", b.state())
	}
}

// A volume that users took from a claim is not assigned to another claim that it would suit.
func TestTakenAway(t *testing.T) {
	b := newBench(t, claim("a", naming("v"), complete), claim("b"), volume("v"),
		storageClass("fast", "disk.example.com"))
	if _, err := b.pass(wake.Request("ns", "b")); err != nil {
		t.Fatal(err)
	}
	b.settle()
	if b.volume("v").Spec.ClaimRef.UID != "uid-a" || b.claim("b").Spec.VolumeName != "" {
		t.Errorf("given away: %s", b.state())
	}
}
