// Package write carries out the controllers' writes: each between its failpoints, and with the gate shut afterwards
// until the cache shows what came back.
package write

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/workload-controllers/internal/gate"
)

// Writer writes the objects of one kind for one controller.
type Writer struct {
	// Client has the controller's name as its field owner.
	Client client.Client
	// Kind is the kind in the names of failpoints, in lower case.
	Kind string
	// Gate is shut until Store shows a write. A controller whose writes may be repeated has neither.
	Gate  *gate.Gate
	Store gate.Store
}

// Do carries out one request on behalf of an owner: between the failpoints of the place "<kind>.<verb>", and with the
// gate shut until what was written has been seen. A request that wrote nothing to wait for returns a nil Seen.
func Do(g *gate.Gate, owner types.UID, place string, request func() (types.UID, gate.Seen, error)) error {
	return failpoint.Around("workload-controllers/"+place, func() error {
		object, seen, err := request()
		if err == nil && seen != nil {
			g.Await(owner, object, seen)
		}
		return err
	})
}

// Create makes the object, and fills in what the server made of it. So do Update and Patch.
func (w *Writer) Create(ctx context.Context, owner types.UID, object client.Object) error {
	return w.write(owner, "create", object, func() error { return w.Client.Create(ctx, object) })
}

// Update replaces the object, provided that it is still at its resource version.
func (w *Writer) Update(ctx context.Context, owner types.UID, object client.Object) error {
	return w.write(owner, "update", object, func() error { return w.Client.Update(ctx, object) })
}

// Patch changes the object.
func (w *Writer) Patch(ctx context.Context, owner types.UID, object client.Object, patch client.Patch) error {
	return w.write(owner, "patch", object, func() error { return w.Client.Patch(ctx, object, patch) })
}

// Delete ends the object, provided that it is still at its resource version; its dependents follow in the background.
// One that is gone counts as deleted.
func (w *Writer) Delete(ctx context.Context, owner types.UID, object client.Object) error {
	return Do(w.Gate, owner, w.Kind+".delete", func() (types.UID, gate.Seen, error) {
		uid, version := object.GetUID(), object.GetResourceVersion()
		err := w.Client.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version},
			client.PropagationPolicy("Background"))
		if w.Store == nil {
			return uid, nil, client.IgnoreNotFound(err)
		}
		return uid, gate.Deleted(w.Store, object), client.IgnoreNotFound(err)
	})
}

func (w *Writer) write(owner types.UID, verb string, object client.Object, request func() error) error {
	return Do(w.Gate, owner, w.Kind+"."+verb, func() (types.UID, gate.Seen, error) {
		if err := request(); err != nil || w.Store == nil {
			return "", nil, err
		}
		return object.GetUID(), gate.Written(w.Store, object), nil
	})
}

// Status writes an object's status where it differs, and says whether it did. An object that is gone needs none.
func Status[O client.Object, S any, P interface {
	*S
	DeepCopyInto(into *S)
}](ctx context.Context, w *Writer, object O, status S, of func(O) P) (written bool, err error) {
	if apiequality.Semantic.DeepEqual(*of(object), status) {
		return false, nil
	}
	next := object.DeepCopyObject().(O)
	// The status may share what is in the cache, and the server's answer is decoded into what is sent.
	P(&status).DeepCopyInto(of(next))
	err = w.write(object.GetUID(), "status", next, func() error { return w.Client.Status().Update(ctx, next) })
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("writing the status: %w", err)
	}
	return err == nil, nil
}
