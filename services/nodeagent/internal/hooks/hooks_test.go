package hooks

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/services/nodeagent/internal/runtime"
)

type executor func(ctx context.Context, id string, command []string, timeout time.Duration) (runtime.ExecResult, error)

func (e executor) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (runtime.ExecResult,
	error) {
	return e(ctx, id, command, timeout)
}

func exits(code int32, err error) executor {
	return func(context.Context, string, []string, time.Duration) (runtime.ExecResult, error) {
		return runtime.ExecResult{ExitCode: code, Stderr: []byte("oops")}, err
	}
}

func with(postStart, preStop *corev1.LifecycleHandler) Target {
	return Target{ContainerID: "c1", IP: "127.0.0.1", Container: &corev1.Container{Name: "c",
		Lifecycle: &corev1.Lifecycle{PostStart: postStart, PreStop: preStop}}}
}

var script = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"do", "it"}}}

// POD-091: a container without hooks has nothing to run.
func TestNoHooks(t *testing.T) {
	r, target := NewRunner(nil, "test"), Target{Container: &corev1.Container{}}
	if err := errors.Join(r.PostStart(t.Context(), target), r.PreStop(t.Context(), target)); err != nil {
		t.Errorf("got %v", err)
	}
}

// POD-086, POD-089, POD-091
func TestExec(t *testing.T) {
	if err := NewRunner(exits(0, nil), "test").PostStart(t.Context(), with(script, nil)); err != nil {
		t.Errorf("got %v", err)
	}
	err := NewRunner(exits(3, nil), "test").PostStart(t.Context(), with(script, nil))
	if err == nil || err.Error() != `PostStartHook failed: command ["do" "it"] exited with 3: oops` {
		t.Errorf("got %v", err)
	}
	lost := errors.New("no such container")
	if err := NewRunner(exits(0, lost), "test").PreStop(t.Context(), with(nil, script)); !errors.Is(err, lost) ||
		!strings.HasPrefix(err.Error(), "PreStopHook failed: ") {
		t.Errorf("got %v", err)
	}
}

// SAF-132: a preStop hook gets the rest of the grace period, a postStart hook has no time limit.
func TestExecHasTheGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got time.Duration
		r := NewRunner(executor(func(_ context.Context, _ string, _ []string,
			timeout time.Duration) (runtime.ExecResult, error) {
			got = timeout
			return runtime.ExecResult{}, nil
		}), "test")
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		if err := r.PreStop(ctx, with(nil, script)); err != nil || got != 25*time.Second {
			t.Errorf("preStop: %v, %v", got, err)
		}
		if err := r.PostStart(t.Context(), with(script, nil)); err != nil || got != 0 {
			t.Errorf("postStart: %v, %v", got, err)
		}
	})
}

func TestHTTPGet(t *testing.T) {
	seen := make(chan *http.Request, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	number, _ := strconv.Atoi(port)
	r := NewRunner(nil, "test")
	hook := &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/bye?now=1", Port: intstr.FromInt(number),
		HTTPHeaders: []corev1.HTTPHeader{{Name: "X-A", Value: "1"}}}}
	if err := r.PreStop(t.Context(), with(nil, hook)); err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got.URL.String() != "/bye?now=1" || got.Header.Get("X-A") != "1" {
		t.Errorf("got %v", got)
	}
	hook.HTTPGet.Port = intstr.FromString("none")
	if err := r.PreStop(t.Context(), with(nil, hook)); err == nil || !strings.Contains(err.Error(),
		`port "none" of container c`) {
		t.Errorf("got %v", err)
	}
	s.Close()
	hook.HTTPGet.Port = intstr.FromInt(number)
	if err := r.PostStart(t.Context(), with(hook, nil)); err == nil {
		t.Error("nobody answered, no error")
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, hook, begin := NewRunner(nil, "test"), &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}},
			time.Now()
		if err := r.PostStart(t.Context(), with(hook, nil)); err != nil || time.Since(begin) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := r.PreStop(ctx, with(nil, hook)); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(begin) != 7*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

func TestUnsupported(t *testing.T) {
	r := NewRunner(nil, "test")
	socket := &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{}}
	if err := r.PostStart(t.Context(), with(socket, nil)); err == nil || !strings.Contains(err.Error(),
		"tcpSocket is not supported: use exec, httpGet or sleep") {
		t.Errorf("got %v", err)
	}
	if err := r.PreStop(t.Context(), with(nil, &corev1.LifecycleHandler{})); err == nil {
		t.Error("an empty handler passed")
	}
}

// An event contains only a part of a command's output.
func TestExecTellsTheBeginning(t *testing.T) {
	long := []byte(strings.Repeat("o", 20_000))
	r := NewRunner(executor(func(context.Context, string, []string, time.Duration) (runtime.ExecResult, error) {
		return runtime.ExecResult{ExitCode: 1, Stdout: long, Stderr: long}, nil
	}), "test")
	err := r.PostStart(t.Context(), with(script, nil))
	if err == nil || strings.Count(err.Error(), "o") < 10_000 || len(err.Error()) > 10_240+100 {
		t.Errorf("a message of %d bytes", len(err.Error()))
	}
}
