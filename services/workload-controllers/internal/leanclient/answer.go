package leanclient

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/metrics"

	"keelson.dev/kit/fieldmask"
	"keelson.dev/kit/seconds"
)

// accepted asks for the metadata of what was written instead of all of it.
const accepted = runtime.ContentTypeProtobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON

var (
	scheme  = newScheme()
	encoder = protobuf.NewSerializer(scheme, scheme)
	decoder = serializer.NewCodecFactory(scheme).UniversalDeserializer()
	// kept are the fields that identify a write.
	kept = newMask()
	pod  = corev1.SchemeGroupVersion.WithKind("Pod")
	// podResource is where Pods are.
	podResource = corev1.SchemeGroupVersion.WithResource("pods")
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(s))
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	s.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Pod{})
	return s
}

func newMask() *fieldmask.Mask {
	only := map[string][]string{"metadata": {"name", "namespace", "uid", "resourceVersion"}}
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	mask, err := fieldmask.New(scheme, fieldmask.Rule{Object: partial, Only: only})
	utilruntime.Must(err)
	return mask
}

// encode returns the Pod as protobuf. The encoder would write the kind into it.
func encode(p *corev1.Pod) ([]byte, error) {
	own := *p
	own.SetGroupVersionKind(pod)
	return runtime.Encode(encoder, &own)
}

// encodeOptions returns the options of a deletion as protobuf.
func encodeOptions(o *metav1.DeleteOptions) ([]byte, error) {
	own := *o
	own.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("DeleteOptions"))
	return runtime.Encode(encoder, &own)
}

// decode reads what identifies a Pod and its version.
func decode(body []byte, into *metav1.ObjectMeta) error {
	body, err := kept.Object(body)
	if err != nil {
		return fmt.Errorf("reading what was written: %w", err)
	}
	object, _, err := decoder.Decode(body, nil, nil)
	if err != nil {
		return fmt.Errorf("reading what was written: %w", err)
	}
	m, ok := object.(metav1.Object)
	if !ok {
		return fmt.Errorf("what was written is a %T", object)
	}
	into.Name, into.Namespace, into.UID, into.ResourceVersion = m.GetName(), m.GetNamespace(), m.GetUID(),
		m.GetResourceVersion()
	return nil
}

// failure returns the error that an answer reports.
func failure(response *http.Response, r request, body []byte) error {
	if object, _, err := decoder.Decode(body, nil, nil); err == nil {
		if status, ok := object.(*metav1.Status); ok && status.Status != metav1.StatusSuccess {
			return apierrors.FromObject(status)
		}
	}
	again := 0
	if wait, asked := retryAfter(response); asked {
		again = int(wait / time.Second)
	}
	return apierrors.NewGenericServerResponse(response.StatusCode, strings.ToLower(r.method),
		r.resource.GroupResource(), r.name, strings.TrimSpace(string(body)), again, true)
}

// retryAfter returns how long the server asks to wait before the request is made again.
func retryAfter(response *http.Response) (wait time.Duration, asked bool) {
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError {
		return 0, false
	}
	after, err := strconv.Atoi(response.Header.Get("Retry-After"))
	return seconds.AtLeastNone(after), err == nil
}

// count counts the request among those of client-go.
func count(ctx context.Context, status int, method, host string) {
	metrics.RequestResult.Increment(ctx, strconv.Itoa(status), method, host)
}
