package attachdetach

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The kinds whose caches are refreshed one by one.
const (
	claims = 1
	pvs    = 2
	vas    = 3
	nodes  = 4
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// SAF-188: one of two controllers whose caches are of different times attaches the volume, in whatever order they
// act.
func TestTwoControllersAttachOnce(t *testing.T) {
	for name, reserved := range map[string]string{"never reserved": "", "reserved for one": "a", "for the other": "b",
		"for a third": "c"} {
		for _, between := range []string{"nothing", "volumes", "all but attachments", "all but Pods"} {
			pv := pvOf("ReadWriteOnce")
			if reserved != "" {
				metav1.SetMetaDataAnnotation(&pv.ObjectMeta, reservedFor, reserved)
			}
			api := server(pv, claimOf("pv"), nodeOf("a"), nodeOf("b"), podOn("one", "a"))
			first := newBench(t, api)
			// The second has seen the first Pod go and another come; the first has not.
			one, two := podOn("one", "a"), podOn("two", "b")
			one.Finalizers = nil
			must(t, api.Update(t.Context(), withVersion(t, api, one)), api.Delete(t.Context(), one),
				api.Create(t.Context(), two))
			second := newBench(t, api)
			for _, act := range [][2]*bench{{first, second}, {second, first}} {
				must(t, act[0].pass(""))
				other := act[1]
				switch between {
				case "volumes":
					other.refresh(pvs)
				case "all but attachments":
					other.refresh(claims, 0, pvs, nodes)
				case "all but Pods":
					other.refresh(claims, pvs, vas, nodes)
				}
			}
			must(t, second.pass(""), first.pass(""))
			if got := first.attachments(); len(got) != 1 {
				t.Errorf("%s, the other sees %s: attached to %v", name, between, got)
			}
		}
	}
}

// withVersion gives an object the version that it has.
func withVersion(t *testing.T, api client.Client, object client.Object) client.Object {
	t.Helper()
	now := object.DeepCopyObject().(client.Object)
	must(t, api.Get(t.Context(), client.ObjectKeyFromObject(object), now))
	object.SetResourceVersion(now.GetResourceVersion())
	return object
}

// SAF-187 SAF-188: the controller writes the record at the version that it decided on, and lists only what the
// apiserver shows as attached; an attachment ends only once the record no longer lists it.
func TestTheRecord(t *testing.T) {
	api := server(pvOf("ReadWriteOnce"), claimOf("pv"), nodeOf("a"), podOn("one", "a"), attachmentTo("a", done))
	b := newBench(t, api)
	node := func() *corev1.Node {
		n := &corev1.Node{}
		must(t, api.Get(t.Context(), client.ObjectKey{Name: "a"}, n))
		return n
	}
	change := func(f func(*corev1.Node)) {
		n := node()
		f(n)
		must(t, api.Status().Update(t.Context(), n))
	}
	listed := func() bool { return len(node().Status.VolumesAttached) == 1 }

	change(func(n *corev1.Node) { n.Status.Phase = corev1.NodeRunning })
	must(t, b.pass("a"))
	if listed() {
		t.Error("a node that changed since is written")
	}
	b.refresh()
	must(t, b.pass("a"))
	if !listed() {
		t.Fatal("what is attached is not recorded")
	}
	if want := []string{`Normal SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "pv"`}; !slices.Equal(
		*b.told, want) {
		t.Errorf("told %q", *b.told)
	}

	// The Pod goes; the node reports the volume as used at the moment the record is written.
	b.refresh()
	gone := podOn("one", "a")
	gone.Finalizers = nil
	must(t, api.Update(t.Context(), withVersion(t, api, gone)), api.Delete(t.Context(), gone))
	b.refresh()
	change(inUse)
	must(t, b.pass("a"))
	if !listed() || len(b.attachments()) != 1 {
		t.Error("a volume is taken from a node that has just said that it uses it")
	}
	b.refresh()
	change(func(n *corev1.Node) { n.Status.VolumesInUse = nil })
	b.refresh()
	b.refuse = func(int) (before, after error) { return nil, errors.New("the answer was lost") }
	if b.pass("a") == nil || listed() || len(b.attachments()) != 1 {
		t.Error("the attachment does not outlive the record")
	}
	// A Pod comes, and the node reports the volume as used: the cache shows neither.
	b.refuse = nil
	b.refresh()
	change(inUse)
	must(t, b.pass("a"))
	if len(b.attachments()) != 1 {
		t.Error("an attachment ends though the node uses it")
	}
	change(func(n *corev1.Node) { n.Status.VolumesInUse = nil })
	b.refresh()
	must(t, b.pass("a"))
	if len(b.attachments()) != 0 {
		t.Error("an attachment that nobody has stays")
	}
}

// SAF-188: a cache that shows an attachment which is over leads to no record.
func TestAnAttachmentThatIsOver(t *testing.T) {
	api := server(pvOf("ReadWriteOnce"), claimOf("pv"), nodeOf("a"), podOn("one", "a"), attachmentTo("a", done))
	b := newBench(t, api)
	must(t, api.Delete(t.Context(), attachmentTo("a")))
	must(t, b.pass("a"))
	node := &corev1.Node{}
	must(t, api.Get(t.Context(), client.ObjectKey{Name: "a"}, node))
	if len(node.Status.VolumesAttached) > 0 {
		t.Error("it is recorded")
	}
}

// A volume is detached from a node that is off or gone only if the apiserver, too, shows no Pod there that has it.
func TestPodsAreAskedForBeforeANodeIsOverruled(t *testing.T) {
	for name, node := range map[string]*corev1.Node{"off": nodeOf("a", inUse, off), "gone": nil} {
		objects := []client.Object{pvOf("ReadWriteOnce"), claimOf("pv"), attachmentTo("a", done)}
		if node != nil {
			objects = append(objects, node)
		}
		api := server(objects...)
		b := newBench(t, api)
		pod := podOn("one", "a")
		must(t, api.Create(t.Context(), pod), b.pass("a"))
		if len(b.attachments()) != 1 {
			t.Errorf("%s: taken from under a Pod", name)
		}
		pod.Finalizers = nil
		must(t, api.Update(t.Context(), pod), api.Delete(t.Context(), pod), b.pass("a"))
		if len(b.attachments()) != 0 {
			t.Errorf("%s: kept, though nobody has it", name)
		}
	}
}

// An attachment whose PersistentVolume is gone is found by its name: it holds the volume, and ends when the volume
// is unused.
func TestTheVolumeIsKnownWithoutItsPersistentVolume(t *testing.T) {
	again := pvOf("ReadWriteOnce")
	again.Name = "again"
	api := server(again, claimOf("again"), nodeOf("a", inUse, listing), nodeOf("b"), podOn("two", "b"),
		attachmentTo("a", done))
	b := newBench(t, api)
	must(t, b.pass(""), b.pass("a"))
	if got := b.attachments(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("attached to %v", got)
	}
	node := nodeOf("a")
	must(t, api.Status().Update(t.Context(), withVersion(t, api, node)))
	for range 3 {
		b.refresh()
		must(t, b.pass("a"), b.pass(""))
	}
	if got := b.attachments(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("then attached to %v", got)
	}
}

// Attachments that others made are left alone, but their volume is not attached to a second node.
func TestAttachmentsOfOthers(t *testing.T) {
	theirs := attachmentTo("a", done, func(a *storagev1.VolumeAttachment) { a.Name = "theirs" })
	b := newBench(t, server(pvOf("ReadWriteOnce"), claimOf("pv"), nodeOf("a"), nodeOf("b"), podOn("two", "b"), theirs))
	must(t, b.pass(""), b.pass("a"))
	if got := b.attachments(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("attached to %v", got)
	}
}

// A Pod that has ended no longer holds its volume: the volume is detached once the node does not use it, though
// the Pod object exists.
func TestThePodThatHasEnded(t *testing.T) {
	for left, node := range map[int]*corev1.Node{0: nodeOf("a"), 1: nodeOf("a", inUse)} {
		b := newBench(t, server(pvOf("ReadWriteOnce"), claimOf("pv"), podOn("one", "a", finished),
			attachmentTo("a"), node))
		must(t, b.pass("a"))
		if got := b.attachments(); len(got) != left {
			t.Errorf("attached to %v, want %d", got, left)
		}
	}
}
