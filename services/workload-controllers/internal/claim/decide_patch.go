package claim

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The patches carry the UID of the object: the apiserver refuses them when the name belongs to another object by now.

// AdoptPatch returns the strategic merge patch that makes an object the owner's, and gives it the finalizers.
func AdoptPatch(owner Owner, object metav1.Object, finalizers ...string) []byte {
	return encode(object.GetUID(), Reference(owner), "finalizers", finalizers)
}

// ReleasePatch returns the strategic merge patch that takes the owner's reference and the finalizers off an object.
func ReleasePatch(owner Owner, object metav1.Object, finalizers ...string) []byte {
	reference := map[string]string{"$patch": "delete", "uid": string(owner.UID)}
	return encode(object.GetUID(), reference, withoutFinalizers, finalizers)
}

// FinalizerPatch returns the strategic merge patch that takes a finalizer off an object.
func FinalizerPatch(object metav1.Object, finalizer string) []byte {
	return encode(object.GetUID(), nil, withoutFinalizers, []string{finalizer})
}

// UnchangedFinalizerPatch is FinalizerPatch for an object that must still be as it was seen.
func UnchangedFinalizerPatch(object metav1.Object, finalizer string) []byte {
	return encodeMetadata(map[string]any{"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(),
		withoutFinalizers: []string{finalizer}})
}

// withoutFinalizers is the key of finalizers to take away.
const withoutFinalizers = "$deleteFromPrimitiveList/finalizers"

func encode(uid types.UID, reference any, key string, finalizers []string) []byte {
	metadata := map[string]any{"uid": uid}
	if reference != nil {
		metadata["ownerReferences"] = []any{reference}
	}
	if len(finalizers) > 0 {
		metadata[key] = finalizers
	}
	return encodeMetadata(metadata)
}

func encodeMetadata(metadata map[string]any) []byte {
	// Strings, booleans, maps and slices encode without fail.
	encoded, _ := json.Marshal(map[string]any{"metadata": metadata})
	return encoded
}
