package answerform

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// release is all that a patch may hold which lets an object go: who owns it, what holds it, and of which version it is.
type release struct {
	Metadata struct {
		UID             types.UID               `json:"uid"`
		ResourceVersion string                  `json:"resourceVersion"`
		Finalizers      []string                `json:"finalizers"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
}

// isRelease reports whether a merge patch changes nothing but finalizers and owners. It has all of its fields, each of
// its type: else the apiserver would have to say what is wrong with the patched object, and quote it.
func isRelease(patch []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(patch))
	decoder.DisallowUnknownFields()
	var r release
	return decoder.Decode(&r) == nil && !decoder.More()
}
