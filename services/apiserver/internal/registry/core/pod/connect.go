package pod

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/nodeproxy"
)

// connection is a subresource that joins a client to a Pod through its node's agent: pods/exec, /attach and
// /portforward. They differ in their options and in what they ask of the agent.
type connection[O runtime.Object] struct {
	connected

	newOptions func() O
	// handler decides where at the agent the client is joined to; an error refuses the request.
	handler func(p *corev1.Pod, options O, responder genericrest.Responder) (join, error)
}

// connected is what a connection joins, and who says for whom.
type connected struct {
	pods       podSource
	nodes      *nodeproxy.Nodes
	authorizer authorizer.Authorizer
}

// join makes the handler once the agent is known.
type join func(nodeproxy.Agent) http.Handler

var _ genericrest.Connecter = &connection[*corev1.PodExecOptions]{}

// New returns an empty options object.
func (c *connection[O]) New() runtime.Object { return c.newOptions() }

// Destroy leaves the store, which belongs to the Pods, open.
func (c *connection[O]) Destroy() {}

// NewConnectOptions returns the options that the query is read into.
func (c *connection[O]) NewConnectOptions() (runtime.Object, bool, string) {
	return c.newOptions(), false, ""
}

// ConnectMethods are those that clients use to ask for an upgrade: WebSocket clients GET, SPDY clients POST.
func (c *connection[O]) ConnectMethods() []string { return []string{http.MethodGet, http.MethodPost} }

// Connect returns the handler that joins the client to the Pod called name.
func (c *connection[O]) Connect(ctx context.Context, name string, opts runtime.Object,
	responder genericrest.Responder) (http.Handler, error) {
	options, ok := opts.(O)
	if !ok {
		return nil, fmt.Errorf("connecting to pod %s: unexpected options %T", name, opts)
	}
	if err := mayCreate(ctx, c.authorizer); err != nil {
		return nil, err
	}
	p, err := c.pods.pod(ctx, name)
	if err != nil {
		return nil, err
	}
	join, err := c.handler(p, options, responder)
	if err != nil {
		return nil, err
	}
	if p.Spec.NodeName == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", name))
	}
	agent, err := c.nodes.Agent(ctx, p.Spec.NodeName, false)
	if err != nil {
		return nil, err
	}
	return join(agent), nil
}

func newExec(c connected) genericrest.Storage {
	return &connection[*corev1.PodExecOptions]{
		connected:  c,
		newOptions: func() *corev1.PodExecOptions { return &corev1.PodExecOptions{} },
		handler: func(p *corev1.Pod, o *corev1.PodExecOptions, responder genericrest.Responder) (join, error) {
			container, err := chooseContainer(p, o.Container)
			if err != nil {
				return nil, err
			}
			if len(o.Command) == 0 {
				return nil, apierrors.NewBadRequest("you must specify at least 1 command")
			}
			streams := opened(nodeproxy.Streams{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, TTY: o.TTY})
			location := nodeproxy.ExecLocation(p, container, o.Command, streams)
			return joinProcess(location, streams, responder), nil
		},
	}
}

func newAttach(c connected) genericrest.Storage {
	return &connection[*corev1.PodAttachOptions]{
		connected:  c,
		newOptions: func() *corev1.PodAttachOptions { return &corev1.PodAttachOptions{} },
		handler: func(p *corev1.Pod, o *corev1.PodAttachOptions, responder genericrest.Responder) (join, error) {
			container, err := chooseContainer(p, o.Container)
			if err != nil {
				return nil, err
			}
			streams := opened(nodeproxy.Streams{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, TTY: o.TTY})
			return joinProcess(nodeproxy.AttachLocation(p, container, streams), streams, responder), nil
		},
	}
}

func newPortForward(c connected) genericrest.Storage {
	return &connection[*corev1.PodPortForwardOptions]{
		connected:  c,
		newOptions: func() *corev1.PodPortForwardOptions { return &corev1.PodPortForwardOptions{} },
		handler: func(p *corev1.Pod, o *corev1.PodPortForwardOptions, responder genericrest.Responder) (join, error) {
			location := nodeproxy.PortForwardLocation(p, o.Ports)
			return func(a nodeproxy.Agent) http.Handler { return nodeproxy.PortForwardHandler(a, location, responder) },
				nil
		},
	}
}

func joinProcess(l nodeproxy.Location, s nodeproxy.Streams, responder genericrest.Responder) join {
	return func(a nodeproxy.Agent) http.Handler { return nodeproxy.ProcessHandler(a, l, s, responder) }
}

// opened are the streams in use: both outputs if the client names none, and no error stream beside a terminal, which
// has both on one.
func opened(s nodeproxy.Streams) nodeproxy.Streams {
	if !s.Stdin && !s.Stdout && !s.Stderr {
		s.Stdout, s.Stderr = true, true
	}
	if s.TTY {
		s.Stderr = false
	}
	return s
}
