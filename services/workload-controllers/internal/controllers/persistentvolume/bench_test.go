package persistentvolume

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/events/eventstest"
	"keelson.dev/services/workload-controllers/internal/storeindex"
	"keelson.dev/services/workload-controllers/internal/wake"
)

// bench is a Controller over an API in memory. Its caches are updated only on request.
type bench struct {
	t          *testing.T
	api        client.WithWatch
	stores     stores
	events     eventstest.Recorded
	writes     []string
	controller *Controller
	// refuse makes a write fail, before or after it is carried out.
	refuse func(text string) (before, after error)
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	b := &bench{t: t, refuse: func(string) (error, error) { return nil, nil }}
	b.api = fake.NewClientBuilder().WithObjects(objects...).
		WithStatusSubresource(&corev1.PersistentVolume{}, &corev1.PersistentVolumeClaim{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object,
				options ...client.CreateOption) error {
				return b.write("create "+o.GetName(), func() error {
					if o.GetUID() == "" {
						o.SetUID(types.UID("uid-" + o.GetName()))
					}
					return c.Create(ctx, o, options...)
				})
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object,
				options ...client.UpdateOption) error {
				return b.write("update "+o.GetName(), func() error { return c.Update(ctx, o, options...) })
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, part string, o client.Object,
				options ...client.SubResourceUpdateOption) error {
				return b.write(part+" "+o.GetName(), func() error {
					return c.SubResource(part).Update(ctx, o, options...)
				})
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object,
				options ...client.DeleteOption) error {
				return b.write("delete "+o.GetName(), func() error { return c.Delete(ctx, o, options...) })
			},
		}).Build()
	b.start()
	return b
}

// start starts a controller that has just won its Lease: it knows only what the caches show.
func (b *bench) start() {
	empty := func() toolscache.Indexer {
		return toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	}
	if b.stores.claims == nil {
		b.stores = stores{claims: empty(), volumes: empty(), classes: empty()}
		if err := b.stores.index(); err != nil {
			b.t.Fatal(err)
		}
		b.catchUp()
	}
	b.controller = build(cached{b.api, b.stores}, b.api, b.stores, &b.events)
	b.controller.now = func() time.Time { return now }
	for _, v := range storeindex.All[corev1.PersistentVolume](b.stores.volumes) {
		b.controller.free.put(v)
	}
}

// cached reads claims and volumes from the caches.
type cached struct {
	client.Client
	stores stores
}

func (c cached) Get(ctx context.Context, k client.ObjectKey, o client.Object, options ...client.GetOption) error {
	var found bool
	switch o := o.(type) {
	case *corev1.PersistentVolume:
		v := storeindex.Get[corev1.PersistentVolume](c.stores.volumes, storeindex.Key("", k.Name))
		if found = v != nil; found {
			v.DeepCopyInto(o)
		}
	case *corev1.PersistentVolumeClaim:
		v := storeindex.Get[corev1.PersistentVolumeClaim](c.stores.claims, storeindex.Key(k.Namespace, k.Name))
		if found = v != nil; found {
			v.DeepCopyInto(o)
		}
	default:
		return c.Client.Get(ctx, k, o, options...)
	}
	if !found {
		return errNotFound
	}
	return nil
}

func (b *bench) write(text string, do func() error) error {
	before, after := b.refuse(text)
	if before != nil {
		return before
	}
	if err := do(); err != nil {
		return err
	}
	b.writes = append(b.writes, text)
	return after
}

// catchUp brings the caches up to date, and the index as the watches would.
func (b *bench) catchUp() {
	b.t.Helper()
	var claims corev1.PersistentVolumeClaimList
	var volumes corev1.PersistentVolumeList
	var classes storagev1.StorageClassList
	if err := errors.Join(b.api.List(b.t.Context(), &claims), b.api.List(b.t.Context(), &volumes),
		b.api.List(b.t.Context(), &classes)); err != nil {
		b.t.Fatal(err)
	}
	err := errors.Join(b.stores.claims.Replace(pointers(claims.Items), "1000000"),
		b.stores.volumes.Replace(pointers(volumes.Items), "1000000"),
		b.stores.classes.Replace(pointers(classes.Items), "1000000"))
	if err != nil {
		b.t.Fatal(err)
	}
	if b.controller == nil {
		return
	}
	known := map[string]bool{}
	for i := range volumes.Items {
		known[volumes.Items[i].Name] = true
		b.controller.free.put(&volumes.Items[i])
	}
	for name := range b.controller.free.known {
		if !known[name] {
			b.controller.free.remove(name)
		}
	}
}

func pointers[O any](items []O) []any {
	var all []any
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

func (b *bench) pass(request reconcile.Request) (reconcile.Result, error) {
	return b.controller.Reconcile(b.t.Context(), request)
}

// settle makes passes over everything, with up-to-date caches, until no pass writes. A failed write ends the
// controller, and the next one starts.
func (b *bench) settle() {
	b.t.Helper()
	for range 20 {
		written, crashed := len(b.writes), false
		for _, request := range b.requests() {
			b.catchUp()
			if _, err := b.pass(request); errors.Is(err, errBroken) {
				crashed = true
				b.start()
			} else if err != nil {
				b.t.Fatalf("%v: %v", request, err)
			}
		}
		if len(b.writes) == written && !crashed {
			return
		}
	}
	b.t.Fatalf("it never settles: %v", b.writes)
}

func (b *bench) requests() []reconcile.Request {
	b.catchUp()
	var found []reconcile.Request
	for _, c := range storeindex.All[corev1.PersistentVolumeClaim](b.stores.claims) {
		found = append(found, wake.Request(c.Namespace, c.Name))
	}
	for _, v := range storeindex.All[corev1.PersistentVolume](b.stores.volumes) {
		found = append(found, wake.Request("", v.Name))
	}
	return found
}

func (b *bench) claim(name string) *corev1.PersistentVolumeClaim {
	b.t.Helper()
	c := &corev1.PersistentVolumeClaim{}
	if err := b.api.Get(b.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, c); err != nil {
		b.t.Fatal(err)
	}
	return c
}

func (b *bench) volume(name string) *corev1.PersistentVolume {
	b.t.Helper()
	v := &corev1.PersistentVolume{}
	if err := b.api.Get(b.t.Context(), client.ObjectKey{Name: name}, v); err != nil {
		b.t.Fatal(err)
	}
	return v
}

// state describes the API in one line: claims with their volumes, volumes with their claims.
func (b *bench) state() string {
	text := ""
	var claims corev1.PersistentVolumeClaimList
	var volumes corev1.PersistentVolumeList
	if err := errors.Join(b.api.List(b.t.Context(), &claims), b.api.List(b.t.Context(), &volumes)); err != nil {
		b.t.Fatal(err)
	}
	for _, c := range claims.Items {
		text += fmt.Sprintf("%s(%s)->%s %s; ", c.Name, c.UID, c.Spec.VolumeName, c.Status.Phase)
	}
	for _, v := range volumes.Items {
		isFor := ""
		if v.Spec.ClaimRef != nil {
			isFor = fmt.Sprintf("%s(%s)", v.Spec.ClaimRef.Name, v.Spec.ClaimRef.UID)
		}
		text += fmt.Sprintf("%s->%s %s; ", v.Name, isFor, v.Status.Phase)
	}
	return text
}
