package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// oneService has the Service hook in the namespace default, with one endpoint.
type oneService struct{}

// Service implements aggregation.Objects.
func (oneService) Service(_ context.Context, namespace, name string) (*corev1.Service, error) {
	if namespace != "default" || name != "hook" {
		return nil, nil
	}
	return &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8443}}}}, nil
}

// Slices implements aggregation.Objects.
func (oneService) Slices(context.Context, string, string) ([]discoveryv1.EndpointSlice, error) {
	return []discoveryv1.EndpointSlice{{AddressType: discoveryv1.AddressTypeIPv4,
		Ports:     []discoveryv1.EndpointPort{{Port: ptr.To(int32(9443))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.7"}}}}}, nil
}

// A webhook's Service is found at an endpoint, by a port that it has.
func TestServices(t *testing.T) {
	for _, row := range []struct {
		namespace, name string
		port            int32
		want            string
	}{
		{"default", "hook", 8443, "https://10.1.0.7:9443"},
		{"default", "hook", 8444, "the service default/hook has no port 8444"},
		{"default", "none", 8443, "there is no service default/none"},
		{"other", "hook", 8443, "there is no service other/hook"},
	} {
		got, err := services{oneService{}}.ResolveEndpoint(row.namespace, row.name, row.port)
		if err != nil && err.Error() != row.want || err == nil && got.String() != row.want {
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
