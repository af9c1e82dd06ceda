package storage

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	genericstorage "k8s.io/apiserver/pkg/storage"

	"keelson.dev/kit/failpoint"
)

// faulty puts a failpoint before and after each write of a store. A failure
// after the write leaves the client without an answer to a write that counts,
// as a crash at that point does.
type faulty struct{ genericstorage.Interface }

// Create writes a new object.
func (f faulty) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return failpoint.Around("apiserver/store.create", func() error {
		return f.Interface.Create(ctx, key, obj, out,
			ttl)
	})
}

// Delete removes an object.
func (f faulty) Delete(ctx context.Context, key string, out runtime.Object, preconditions *genericstorage.Preconditions,
	validate genericstorage.ValidateObjectFunc, cached runtime.Object, opts genericstorage.DeleteOptions) error {
	return failpoint.Around("apiserver/store.delete", func() error {
		return f.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts)
	})
}

// GuaranteedUpdate changes an object.
func (f faulty) GuaranteedUpdate(ctx context.Context, key string, dest runtime.Object, ignoreNotFound bool,
	preconditions *genericstorage.Preconditions, update genericstorage.UpdateFunc, cached runtime.Object) error {
	return failpoint.Around("apiserver/store.update", func() error {
		return f.Interface.GuaranteedUpdate(ctx, key, dest, ignoreNotFound, preconditions, update, cached)
	})
}
