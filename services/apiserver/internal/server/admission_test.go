package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
)

// oneService is a store with the Service hook in the namespace default.
type oneService struct{ genericrest.Storage }

// Get implements genericrest.Getter.
func (oneService) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	namespace, _ := genericapirequest.NamespaceFrom(ctx)
	if namespace != "default" || name != "hook" {
		return nil, apierrors.NewNotFound(corev1.Resource("services"), name)
	}
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.7", Ports: []corev1.ServicePort{{Port: 8443}}}}, nil
}

// A webhook's Service is found at its cluster IP, on a port that it has.
func TestServices(t *testing.T) {
	found := services{&storedObjects{storages: map[string]genericrest.Storage{"services": oneService{}}}}
	for _, row := range []struct {
		namespace, name string
		port            int32
		want            string
	}{
		{"default", "hook", 8443, "https://10.96.0.7:8443"},
		{"default", "hook", 8444, ""},
		{"default", "none", 8443, ""},
		{"other", "hook", 8443, ""},
	} {
		got, err := found.ResolveEndpoint(row.namespace, row.name, row.port)
		if (err != nil) != (row.want == "") || err == nil && got.String() != row.want {
			t.Errorf("%s/%s:%d: %v, %v, want %q", row.namespace, row.name, row.port, got, err, row.want)
		}
	}
	if _, err := (services{&storedObjects{}}).ResolveEndpoint("default", "hook", 8443); err == nil {
		t.Error("found before the store is open")
	}
}

// What plugins know of the resources is dropped every half minute, until the server ends.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 95*time.Second)
		defer cancel()
		times := 0
		forget(ctx, func() { times++ })
		if times != 3 {
			t.Errorf("dropped %d times in 95 s, want 3", times)
		}
	})
}
