package leanclient

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// target is where the status of a kind is written.
type target struct {
	kind     schema.GroupVersionKind
	resource schema.GroupVersionResource
}

func targetOf(version schema.GroupVersion, kind, resource string) target {
	return target{version.WithKind(kind), version.WithResource(resource)}
}

// targets are those of the statuses that change with each Pod.
var targets = map[reflect.Type]target{
	reflect.TypeFor[*appsv1.Deployment]():  targetOf(appsv1.SchemeGroupVersion, "Deployment", "deployments"),
	reflect.TypeFor[*appsv1.ReplicaSet]():  targetOf(appsv1.SchemeGroupVersion, "ReplicaSet", "replicasets"),
	reflect.TypeFor[*appsv1.StatefulSet](): targetOf(appsv1.SchemeGroupVersion, "StatefulSet", "statefulsets"),
	reflect.TypeFor[*appsv1.DaemonSet]():   targetOf(appsv1.SchemeGroupVersion, "DaemonSet", "daemonsets"),
	reflect.TypeFor[*batchv1.Job]():        targetOf(batchv1.SchemeGroupVersion, "Job", "jobs"),
}

// WithStatuses returns a client that writes the statuses of workloads as this one, in the manager's name, and does
// all else as the other. Of what an update of such a status has made of the object, only UID and version are filled
// in.
func (c *Client) WithStatuses(other client.Client, manager string) client.Client {
	return &withStatuses{Client: other, lean: c, manager: manager}
}

type withStatuses struct {
	client.Client

	lean    *Client
	manager string
}

// Status implements client.StatusClient.
func (w *withStatuses) Status() client.SubResourceWriter {
	return &statusWriter{SubResourceWriter: w.Client.Status(), to: w}
}

type statusWriter struct {
	client.SubResourceWriter

	to *withStatuses
}

// Update replaces the status, provided that the object is still at its resource version.
func (s *statusWriter) Update(ctx context.Context, object client.Object,
	options ...client.SubResourceUpdateOption) error {
	of, known := targets[reflect.TypeOf(object)]
	if !known || len(options) > 0 {
		return s.SubResourceWriter.Update(ctx, object, options...)
	}
	if err := checkName(of.kind.Kind, object.GetName()); err != nil {
		return err
	}
	object.GetObjectKind().SetGroupVersionKind(of.kind)
	body, err := runtime.Encode(encoder, object)
	if err != nil {
		return fmt.Errorf("encoding the status of a %s: %w", of.kind.Kind, err)
	}
	var written metav1.ObjectMeta
	err = s.to.lean.do(ctx, request{method: http.MethodPut, resource: of.resource, namespace: object.GetNamespace(),
		name: object.GetName(), subresource: "status", manager: s.to.manager, bodyType: runtime.ContentTypeProtobuf,
		body: body}, func(body []byte) error { return decode(body, &written) })
	if err != nil {
		return err
	}
	object.SetUID(written.UID)
	object.SetResourceVersion(written.ResourceVersion)
	return nil
}
