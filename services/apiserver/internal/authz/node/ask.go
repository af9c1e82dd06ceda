package node

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Slice reads a ResourceSlice at a resource version, as Volume does. It is shared, too.
type Slice func(ctx context.Context, name, resourceVersion string) (*resourcev1.ResourceSlice, error)

// ask decides by the object that is asked for, of which the cache cannot refuse. That one does not exist is not for
// every node to know.
func ask[O any](ctx context.Context, node string, r request,
	read func(ctx context.Context, name, resourceVersion string) (O, error), of func(node string, object O) verdict,
) (verdict, error) {
	v := refuse(unrelated, node)
	for _, version := range []string{"0", ""} {
		object, err := read(ctx, r.Name, version)
		switch {
		case apierrors.IsNotFound(err) || err != nil && version == "0":
			continue
		case err != nil:
			return verdict{}, fmt.Errorf("reading the object %q of %s: %w", r.Name, r.Resource, err)
		}
		if v = of(node, object); v.allowed {
			break
		}
	}
	return v, nil
}
