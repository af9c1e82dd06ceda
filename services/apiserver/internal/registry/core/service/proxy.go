package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/httpproxy"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// Endpoints are what stands behind Services.
type Endpoints interface {
	// Slices are the EndpointSlices of a Service.
	Slices(ctx context.Context, namespace, service string) ([]discoveryv1.EndpointSlice, error)
	// Pod is one Pod.
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
}

// proxied leads from a Service to one of its Pods.
type proxied struct {
	services  *rest.Storage
	endpoints Endpoints
	transport http.RoundTripper
}

// newProxy is services/proxy: a request to one of the Pods behind a port.
func newProxy(p proxied) genericrest.Storage {
	return &httpproxy.Subresource[*corev1.ServiceProxyOptions]{
		NewOptions: func() *corev1.ServiceProxyOptions { return &corev1.ServiceProxyOptions{} },
		Path:       func(o *corev1.ServiceProxyOptions) string { return o.Path },
		Find:       p.find,
	}
}

func (p proxied) find(ctx context.Context, a httpproxy.Address) (httpproxy.Target, error) {
	obj, err := p.services.Get(ctx, a.Name, &metav1.GetOptions{})
	if err != nil {
		return httpproxy.Target{}, err // not wrapped: clients get the status that it is
	}
	service := obj.(*corev1.Service)
	port, err := proxiedPort(service, a.Port)
	if err != nil {
		return httpproxy.Target{}, apierrors.NewServiceUnavailable(err.Error())
	}
	namespace := genericapirequest.NamespaceValue(ctx)
	parts, err := p.endpoints.Slices(ctx, namespace, a.Name)
	if err != nil {
		return httpproxy.Target{}, fmt.Errorf("reading the endpoints of the service %s: %w", a.Name, err)
	}
	found := backends(namespace, port, parts)
	for _, i := range rand.Perm(len(found)) {
		at := found[i]
		if pod, err := p.endpoints.Pod(ctx, namespace, at.pod); err == nil && isAt(pod, at.ip) {
			host := net.JoinHostPort(at.ip, strconv.Itoa(int(at.port)))
			return httpproxy.Target{Scheme: a.Scheme, Host: host, Transport: p.transport}, nil
		}
	}
	return httpproxy.Target{}, apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q",
		a.Name))
}
