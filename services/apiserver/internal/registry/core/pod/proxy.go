package pod

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/httpproxy"
)

// newProxy is pods/proxy: a request to a port of a Pod.
func newProxy(pods podSource, transport http.RoundTripper) genericrest.Storage {
	return &httpproxy.Subresource[*corev1.PodProxyOptions]{
		NewOptions: func() *corev1.PodProxyOptions { return &corev1.PodProxyOptions{} },
		Path:       func(o *corev1.PodProxyOptions) string { return o.Path },
		Find: func(ctx context.Context, a httpproxy.Address) (httpproxy.Target, error) {
			p, err := pods.pod(ctx, a.Name)
			if err != nil {
				return httpproxy.Target{}, err
			}
			host, err := proxiedHost(p, a.Port)
			if err != nil {
				return httpproxy.Target{}, apierrors.NewBadRequest(err.Error())
			}
			return httpproxy.Target{Scheme: a.Scheme, Host: host, Transport: transport}, nil
		},
	}
}

// proxiedHost is the Pod's address with the port that is asked for, by number or by name, or with the first one that a
// container names.
func proxiedHost(p *corev1.Pod, asked string) (string, error) {
	ip := p.Status.PodIP
	if ip == "" && len(p.Status.PodIPs) > 0 {
		ip = p.Status.PodIPs[0].IP
	}
	if ip == "" {
		return "", fmt.Errorf("pod %s has no address yet", p.Name)
	}
	if number, err := strconv.ParseUint(asked, 10, 16); err == nil && number > 0 {
		return net.JoinHostPort(ip, asked), nil
	}
	for _, container := range p.Spec.Containers {
		for _, port := range container.Ports {
			if asked == "" || asked == port.Name {
				return net.JoinHostPort(ip, strconv.Itoa(int(port.ContainerPort))), nil
			}
		}
	}
	if asked == "" {
		return net.JoinHostPort(ip, "80"), nil
	}
	return "", fmt.Errorf("pod %s has no port %q: no container of it names one so", p.Name, asked)
}
