package claim

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The patches carry the UID of the object: the apiserver refuses them when the name belongs to another object by now.

// AdoptPatch returns the strategic merge patch that makes an object the owner's.
func AdoptPatch(owner Owner, object metav1.Object) []byte {
	return encode(object.GetUID(), Reference(owner))
}

// ReleasePatch returns the strategic merge patch that takes the owner's reference off an object.
func ReleasePatch(owner Owner, object metav1.Object) []byte {
	return encode(object.GetUID(), map[string]string{"$patch": "delete", "uid": string(owner.UID)})
}

func encode(uid types.UID, reference any) []byte {
	patch := map[string]any{"metadata": map[string]any{"uid": uid, "ownerReferences": []any{reference}}}
	// Strings, booleans, maps and slices encode without fail.
	encoded, _ := json.Marshal(patch)
	return encoded
}
