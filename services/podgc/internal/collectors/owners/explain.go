package owners

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/introspect"
)

// explained is the kind under which this collector explains all objects: it knows only their metadata.
// Their name is the object's UID, which is its own among all kinds.
const explained = "PartialObjectMetadata"

// explain describes what keeps an object or why it is deleted, given its UID. It decides as a pass would, and
// applies nothing.
func (c *collector) explain(ctx context.Context, _, uid string) (introspect.Explanation, bool) {
	in, known := c.snapshot(types.UID(uid))
	if !known {
		return introspect.Explanation{}, false
	}
	plan, doubts := Decide(in), map[types.UID]string{}
	if len(plan.Lookup) > 0 {
		find := c.lookup.telling(func(_ *Object, ref metav1.OwnerReference) {
			doubts[ref.UID] = "it lives in a namespace, which this object does not"
		}).find
		for _, ref := range plan.Lookup {
			state, err := find(ctx, in.Object, ref)
			if err != nil {
				doubts[ref.UID] = err.Error()
			}
			in.Owners[ref.UID] = state
		}
		plan = Decide(in)
	}
	return account(in, plan, doubts).Explanation(), true
}
