package scheme

import (
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
)

// addBetaEviction registers the one kind of policy/v1beta1 that is still taken: clients may ask for an eviction in it.
func addBetaEviction(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(policyv1beta1.SchemeGroupVersion, &policyv1beta1.Eviction{})
	return nil
}

func addEvictionConversions(scheme *runtime.Scheme) error {
	return convertible(scheme,
		func(in *policyv1.Eviction, out *policyv1beta1.Eviction) {
			*out = policyv1beta1.Eviction{ObjectMeta: in.ObjectMeta, DeleteOptions: in.DeleteOptions}
		},
		func(in *policyv1beta1.Eviction, out *policyv1.Eviction) {
			*out = policyv1.Eviction{ObjectMeta: in.ObjectMeta, DeleteOptions: in.DeleteOptions}
		})
}
