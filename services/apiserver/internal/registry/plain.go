package registry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

func plain[O rest.Object](r rest.Resource[O]) Resource {
	return Resource{r.AddToScheme, func(o rest.Options) (map[string]genericrest.Storage, error) {
		s, err := r.NewStorage(o)
		if err != nil {
			return nil, err
		}
		return s.Map(), nil
	}}
}

func plainCore() []Resource {
	return []Resource{
		plain(rest.Resource[*corev1.ServiceAccount]{Name: "serviceaccounts", Singular: "serviceaccount", ShortNames: []string{"sa"},
			New: func() *corev1.ServiceAccount { return &corev1.ServiceAccount{} }, NewList: func() runtime.Object { return &corev1.ServiceAccountList{} }}),
		plain(rest.Resource[*corev1.Service]{Name: "services", Singular: "service", ShortNames: []string{"svc"}, Status: &rest.Strategy[*corev1.Service]{},
			New: func() *corev1.Service { return &corev1.Service{} }, NewList: func() runtime.Object { return &corev1.ServiceList{} }}),
		plain(rest.Resource[*corev1.Pod]{Name: "pods", Singular: "pod", ShortNames: []string{"po"}, Status: &rest.Strategy[*corev1.Pod]{},
			New: func() *corev1.Pod { return &corev1.Pod{} }, NewList: func() runtime.Object { return &corev1.PodList{} }}),
	}
}
