// Package proxy serves the Node with its /proxy, which leads to its agent, or to another port of the machine.
package proxy

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
	"keelson.dev/services/apiserver/internal/nodeproxy"
	"keelson.dev/services/apiserver/internal/registry/core/node"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// Node is the Node with its /proxy.
func Node(nodes *nodeproxy.Nodes, transport http.RoundTripper) rest.Entry {
	r := rest.Serve(node.Resource)
	r.Subresources = map[string]func(*rest.Storage) genericrest.Storage{
		"nodes/proxy": func(*rest.Storage) genericrest.Storage { return newProxy(nodes, transport) },
	}
	return r
}

func newProxy(nodes *nodeproxy.Nodes, transport http.RoundTripper) genericrest.Storage {
	return &httpproxy.Subresource[*corev1.NodeProxyOptions]{
		NewOptions: func() *corev1.NodeProxyOptions { return &corev1.NodeProxyOptions{} },
		Path:       func(o *corev1.NodeProxyOptions) string { return o.Path },
		Find: func(ctx context.Context, a httpproxy.Address) (httpproxy.Target, error) {
			agent, err := nodes.Agent(ctx, a.Name, false)
			if err != nil {
				return httpproxy.Target{}, err
			}
			target, err := proxied(agent, a, transport)
			if err != nil {
				return httpproxy.Target{}, apierrors.NewBadRequest(err.Error())
			}
			return target, nil
		},
	}
}

// proxied is the agent itself if its port or none is asked for. What listens at another port does not get to see who
// the apiserver is.
func proxied(agent nodeproxy.Agent, a httpproxy.Address, transport http.RoundTripper) (httpproxy.Target, error) {
	host, port, err := net.SplitHostPort(agent.Base.Host)
	switch {
	case err != nil:
		return httpproxy.Target{}, fmt.Errorf("node %s has no address: %w", a.Name, err)
	case a.Port == "" || a.Port == port:
		return httpproxy.Target{Scheme: agent.Base.Scheme, Host: agent.Base.Host, Transport: agent.Transport}, nil
	}
	if number, err := strconv.ParseUint(a.Port, 10, 16); err != nil || number == 0 {
		return httpproxy.Target{}, fmt.Errorf("node %s has no port %q: must be a number from 1 to 65535", a.Name,
			a.Port)
	}
	return httpproxy.Target{Scheme: a.Scheme, Host: net.JoinHostPort(host, a.Port), Transport: transport}, nil
}
