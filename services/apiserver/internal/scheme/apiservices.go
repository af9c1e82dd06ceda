package scheme

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// addAPIServices registers the types alone: the library's own function adds conversions to its internal types too.
func addAPIServices(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(apiregistrationv1.SchemeGroupVersion,
		&apiregistrationv1.APIService{}, &apiregistrationv1.APIServiceList{})
	metav1.AddToGroupVersion(scheme, apiregistrationv1.SchemeGroupVersion)
	return nil
}
