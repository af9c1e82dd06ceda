// Package hooks runs the lifecycle hooks of containers: postStart right after a container has started, preStop before
// it is stopped.
package hooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/kit/seconds"
	"keelson.dev/services/nodeagent/internal/handlers"
)

// Reasons of the Warning events about a hook that failed. The hook's error is the event's text.
const (
	ReasonPostStart = "FailedPostStartHook"
	ReasonPreStop   = "FailedPreStopHook"
)

// defaultPort is used by an httpGet hook that names none.
const defaultPort = 80

// Target is the container instance of a hook.
type Target struct {
	Container   *corev1.Container
	ContainerID string
	// IP is the address that requests go to: the Pod's, or the node's for a Pod on the host's network.
	IP string
}

// Runner runs hooks. It is safe for concurrent use and has no state.
type Runner struct {
	executor handlers.Executor
	client   *http.Client
	version  string
}

// NewRunner returns a Runner; version is sent to containers as kube-probe/<version>.
func NewRunner(executor handlers.Executor, version string) *Runner {
	return &Runner{executor: executor, client: handlers.NewClient(), version: version}
}

// PostStart runs the container's postStart hook to its end, if it has one. If it fails, the container is to be killed.
func (r *Runner) PostStart(ctx context.Context, target Target) error {
	lifecycle := target.Container.Lifecycle
	if lifecycle == nil || lifecycle.PostStart == nil {
		return nil
	}
	if err := r.run(ctx, lifecycle.PostStart, target); err != nil {
		return fmt.Errorf("PostStartHook failed: %w", err)
	}
	return nil
}

// PreStop runs the container's preStop hook until it or ctx ends, if it has one. ctx ends with the grace period. If
// the hook fails, the container is stopped all the same.
func (r *Runner) PreStop(ctx context.Context, target Target) error {
	lifecycle := target.Container.Lifecycle
	if lifecycle == nil || lifecycle.PreStop == nil {
		return nil
	}
	if err := r.run(ctx, lifecycle.PreStop, target); err != nil {
		return fmt.Errorf("PreStopHook failed: %w", err)
	}
	return nil
}

func (r *Runner) run(ctx context.Context, handler *corev1.LifecycleHandler, target Target) error {
	switch {
	case handler.Exec != nil:
		return r.exec(ctx, handler.Exec.Command, target)
	case handler.HTTPGet != nil:
		return r.httpGet(ctx, handler.HTTPGet, target)
	case handler.Sleep != nil:
		return sleep(ctx, seconds.Of(handler.Sleep.Seconds))
	case handler.TCPSocket != nil:
		return errors.New("lifecycle handler tcpSocket is not supported: use exec, httpGet or sleep")
	}
	return errors.New("lifecycle handler is empty: use exec, httpGet or sleep")
}

// exec succeeds with exit status 0. Without a deadline of ctx the command has no time limit.
func (r *Runner) exec(ctx context.Context, command []string, target Target) error {
	var timeout time.Duration
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(deadline), time.Second)
	}
	result, err := r.executor.ExecSync(ctx, target.ContainerID, command, timeout)
	if err != nil {
		return fmt.Errorf("running %q: %w", command, err)
	}
	if result.ExitCode != 0 {
		return fmt.Errorf("command %q exited with %d: %s", command, result.ExitCode, result.Output())
	}
	return nil
}

// httpGet succeeds with any answer: what counts is that the request arrived.
func (r *Runner) httpGet(ctx context.Context, get *corev1.HTTPGetAction, target Target) error {
	if get.Port == (intstr.IntOrString{}) {
		get = get.DeepCopy()
		get.Port = intstr.FromInt32(defaultPort)
	}
	request, err := handlers.Request(ctx, get, target.Container, target.IP, r.version)
	if err != nil {
		return err
	}
	_, _, err = handlers.Do(r.client, request)
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sleeping %s: %w", d, ctx.Err())
	}
}
