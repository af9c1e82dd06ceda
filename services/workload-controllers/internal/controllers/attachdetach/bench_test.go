package attachdetach

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"keelson.dev/kit/events/eventstest"
)

// vol is the volume that most tests use, under the name that nodes and the API use. Package volumename tests the
// name of an attachment to node a.
var vol = Volume{Driver: "disk.example.com", Handle: "vol-1"}

const volName = corev1.UniqueVolumeName("kubernetes.io/csi/disk.example.com^vol-1")

var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func pvOf(modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", UID: "pv-uid"},
		Spec: corev1.PersistentVolumeSpec{AccessModes: modes,
			ClaimRef: &corev1.ObjectReference{Namespace: "ns", Name: "data", UID: "claim-uid"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "disk.example.com", VolumeHandle: "vol-1"}}}}
}

func claimOf(pv string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "claim-uid"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: pv}}
}

// podOn returns a Pod on the node, with the bound claim.
func podOn(name, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid"),
		CreationTimestamp: metav1.Time{Time: start}, Finalizers: []string{"test/agent"}},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func running(p *corev1.Pod)  { p.Status.Phase = corev1.PodRunning }
func finished(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
func leaving(p *corev1.Pod)  { p.DeletionTimestamp = &metav1.Time{Time: start} }

func nodeOf(name string, changes ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-uid")},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}}}}
	for _, change := range changes {
		change(node)
	}
	return node
}

func inUse(n *corev1.Node)    { n.Status.VolumesInUse = []corev1.UniqueVolumeName{volName} }
func listing(n *corev1.Node)  { n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: volName}} }
func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = "Unknown" }
func off(n *corev1.Node) {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "node.kubernetes.io/out-of-service", Effect: "NoExecute"})
}

// attachmentTo is the attachment of the volume to a node.
func attachmentTo(node string, changes ...func(*storagev1.VolumeAttachment)) *storagev1.VolumeAttachment {
	name := vol.attachment(node)
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
		CreationTimestamp: metav1.Time{Time: start}},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: vol.Driver, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv")}}}
	for _, change := range changes {
		change(a)
	}
	return a
}

func done(a *storagev1.VolumeAttachment) { a.Status.Attached = true }
func ending(a *storagev1.VolumeAttachment) {
	a.DeletionTimestamp, a.Finalizers = &metav1.Time{Time: start}, []string{"driver"}
}

// server is an apiserver for tests: it keeps versions and finalizers.
func server(objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithObjects(objects...).
		WithStatusSubresource(&corev1.Node{}, &corev1.Pod{}, &storagev1.VolumeAttachment{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}).Build()
}

// bench is a controller with its own caches, which show the state of their last refresh.
type bench struct {
	testing.TB
	api    client.WithWatch
	c      *Controller
	told   *eventstest.Recorded
	writes int
	// refuse makes a write fail, given its number, before or after it is carried out.
	refuse func(write int) (before, after error)
}

func newBench(t testing.TB, api client.WithWatch) *bench {
	b := &bench{TB: t, api: api}
	s := &stores{}
	for _, store := range s.each() {
		*store = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	}
	if err := s.index(); err != nil {
		t.Fatal(err)
	}
	b.restart(s)
	b.refresh()
	return b
}

// each are the caches, in the order of lists.
func (s *stores) each() []*toolscache.Indexer {
	return []*toolscache.Indexer{&s.pods, &s.claims, &s.pvs, &s.attachments, &s.nodes, &s.drivers}
}

// restart begins a new term; the caches keep their contents.
func (b *bench) restart(s *stores) {
	guarded := interceptor.NewClient(b.api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return b.write(func() error {
				o.SetUID(types.UID(fmt.Sprint(o.GetName(), b.writes)))
				return c.Create(ctx, o, opts...)
			})
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return b.write(func() error { return c.Update(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return b.write(func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			return b.write(func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
	b.told = &eventstest.Recorded{}
	b.c = build(guarded, b.api, s, Settings{}, b.told)
	b.c.now = func() time.Time { return start }
}

func (b *bench) write(do func() error) error {
	b.writes++
	if b.refuse == nil {
		return do()
	}
	before, after := b.refuse(b.writes)
	if before != nil {
		return before
	}
	if err := do(); err != nil {
		return err
	}
	return after
}

// refresh brings the caches up to date: the named kinds, or all kinds if none is named, since each kind has its
// own watch.
func (b *bench) refresh(only ...int) {
	b.Helper()
	lists := []client.ObjectList{&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{},
		&storagev1.VolumeAttachmentList{}, &corev1.NodeList{}, &storagev1.CSIDriverList{}}
	for i, store := range b.c.stores.each() {
		if len(only) > 0 && !slices.Contains(only, i) {
			continue
		}
		if err := b.api.List(b.Context(), lists[i]); err != nil {
			b.Fatal(err)
		}
		if err := (*store).Replace(itemsOf(lists[i]), lists[i].GetResourceVersion()); err != nil {
			b.Fatal(err)
		}
	}
}

func itemsOf(list client.ObjectList) (items []any) {
	switch list := list.(type) {
	case *corev1.PodList:
		items = pointers(list.Items)
	case *corev1.PersistentVolumeClaimList:
		items = pointers(list.Items)
	case *corev1.PersistentVolumeList:
		items = pointers(list.Items)
	case *storagev1.VolumeAttachmentList:
		items = pointers(list.Items)
	case *corev1.NodeList:
		items = pointers(list.Items)
	case *storagev1.CSIDriverList:
		items = pointers(list.Items)
	}
	return items
}

func pointers[T any](items []T) []any {
	all := make([]any, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// pass makes a pass over the volume, or over a node.
func (b *bench) pass(node string) error {
	about := target{node: node}
	if node == "" {
		about.volume = vol
	}
	_, err := b.c.Reconcile(b.Context(), about)
	return err
}

// attachments returns the nodes that have attachments.
func (b *bench) attachments() (nodes []string) {
	b.Helper()
	list := &storagev1.VolumeAttachmentList{}
	if err := b.api.List(b.Context(), list); err != nil {
		b.Fatal(err)
	}
	for i := range list.Items {
		nodes = append(nodes, list.Items[i].Spec.NodeName)
	}
	slices.Sort(nodes)
	return nodes
}
