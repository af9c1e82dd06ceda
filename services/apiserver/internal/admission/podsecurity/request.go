package podsecurity

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	standards "k8s.io/pod-security-admission/admission"
	"k8s.io/pod-security-admission/api"
)

// request is an admission request as the library reads it. The objects are the API's own, as it wants them.
type request struct{ admission.Attributes }

var _ api.Attributes = request{}

// GetOperation implements api.Attributes.
func (r request) GetOperation() admissionv1.Operation {
	return admissionv1.Operation(r.Attributes.GetOperation())
}

// GetObject implements api.Attributes.
func (r request) GetObject() (runtime.Object, error) { return r.Attributes.GetObject(), nil }

// GetOldObject implements api.Attributes.
func (r request) GetOldObject() (runtime.Object, error) { return r.Attributes.GetOldObject(), nil }

// GetUserName implements api.Attributes. It is empty if there is no user, as inside the server.
func (r request) GetUserName() string {
	if user := r.GetUserInfo(); user != nil {
		return user.GetName()
	}
	return ""
}

// Pods reads the Pods of a namespace, which it must not change. What was written a moment ago may be missing.
type Pods func(ctx context.Context, namespace string) ([]corev1.Pod, error)

var _ standards.PodLister = Pods(nil)

// ListPods implements PodLister.
func (read Pods) ListPods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	pods, err := read(ctx, namespace)
	if err != nil {
		return nil, err
	}
	listed := make([]*corev1.Pod, len(pods))
	for i := range pods {
		listed[i] = &pods[i]
	}
	return listed, nil
}
