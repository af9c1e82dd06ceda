package resource

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RaiseGeneration sets obj's generation for an update: one more than old's if
// the desired state changed, else old's, whatever the request says.
func RaiseGeneration(obj, old metav1.Object, specChanged bool) {
	generation := old.GetGeneration()
	if specChanged {
		generation++
	}
	obj.SetGeneration(generation)
}
