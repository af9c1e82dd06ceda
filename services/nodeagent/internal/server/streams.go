package server

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/proxy"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// exec runs a command in a running container. The runtime serves the session; this server only passes it on, in the
// protocol that the client has chosen.
func (s *Server) exec(w http.ResponseWriter, r *http.Request) error {
	id, options, err := s.session(r)
	if err != nil {
		return err
	}
	command := r.URL.Query()["command"]
	if len(command) == 0 {
		return badRequest("command: at least one word is required")
	}
	target, err := s.config.Runtime.ExecURL(r.Context(), &cri.ExecRequest{
		ContainerId: id, Cmd: command, Tty: options.TTY, Stdin: options.Stdin, Stdout: options.Stdout,
		Stderr: options.Stderr})
	return s.pass(w, r, target, err)
}

// attach connects to the process of a running container.
func (s *Server) attach(w http.ResponseWriter, r *http.Request) error {
	id, options, err := s.session(r)
	if err != nil {
		return err
	}
	target, err := s.config.Runtime.AttachURL(r.Context(), &cri.AttachRequest{
		ContainerId: id, Tty: options.TTY, Stdin: options.Stdin, Stdout: options.Stdout, Stderr: options.Stderr})
	return s.pass(w, r, target, err)
}

// session finds the container of an exec or attach request, and the streams that it asks for.
func (s *Server) session(r *http.Request) (id string, options *remotecommand.Options, err error) {
	pod, err := s.pod(r)
	if err != nil {
		return "", nil, err
	}
	options, err = remotecommand.NewOptions(r)
	if err != nil {
		return "", nil, badRequest("%v", err)
	}
	has, err := s.observe(r.Context(), pod)
	if err != nil {
		return "", nil, err
	}
	id, err = runningInstance(pod, r.PathValue("container"), has)
	return id, options, err
}

// portForward connects to ports inside the Pod's network.
func (s *Server) portForward(w http.ResponseWriter, r *http.Request) error {
	pod, err := s.pod(r)
	if err != nil {
		return err
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		return badRequest("%v", err)
	}
	has, err := s.observe(r.Context(), pod)
	if err != nil {
		return err
	}
	sandbox := has.Sandbox()
	if sandbox == nil || !sandbox.Ready {
		return badRequest("pod %s is not running", pod.Name)
	}
	target, err := s.config.Runtime.PortForwardURL(r.Context(), &cri.PortForwardRequest{PodSandboxId: sandbox.ID,
		Port: options.Ports})
	return s.pass(w, r, target, err)
}

// pass connects the client to the runtime's URL, once no Pod can answer there.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, target string, err error) error {
	if err != nil {
		return fmt.Errorf("asking the runtime for a session: %w", err)
	}
	location, err := url.Parse(target)
	if err != nil {
		return fmt.Errorf("reading the runtime's URL: %w", err)
	}
	if at, err := netip.ParseAddrPort(location.Host); err == nil {
		if err := s.config.KeepStreams(at); err != nil {
			return fmt.Errorf("asking the runtime for a session: %w", err)
		}
	}
	handler := proxy.NewUpgradeAwareHandler(location, nil, false, true, responder{})
	handler.UseLocationHost = true
	handler.ServeHTTP(w, r)
	return nil
}

// responder answers when the client requests no session, or the runtime cannot be reached.
type responder struct{}

// Error implements proxy.ErrorResponder.
func (responder) Error(w http.ResponseWriter, _ *http.Request, err error) {
	code := http.StatusBadGateway
	if apierrors.IsBadRequest(err) {
		code = http.StatusBadRequest
	}
	http.Error(w, "connecting to the container: "+err.Error(), code)
}
