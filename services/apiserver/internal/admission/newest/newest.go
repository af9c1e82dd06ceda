// Package newest chooses among several objects that all want to be the default.
package newest

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Of returns the newest of the objects that are defaults, of those that are as new the first by name. ok is false where
// there is none.
func Of[O metav1.Object](objects []O, isDefault func(O) bool) (chosen O, ok bool) {
	for _, object := range objects {
		if isDefault(object) && (!ok || newer(object, chosen)) {
			chosen, ok = object, true
		}
	}
	return chosen, ok
}

func newer(object, than metav1.Object) bool {
	made, before := object.GetCreationTimestamp(), than.GetCreationTimestamp()
	return made.After(before.Time) || made.Equal(&before) && object.GetName() < than.GetName()
}
