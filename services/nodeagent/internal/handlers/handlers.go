// Package handlers implements what probes and lifecycle hooks have in common: finding a container's port, and
// sending an HTTP request to it directly from the node.
package handlers

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/services/nodeagent/internal/runtime"
)

// Executor runs commands in containers. A runtime.Runtime implements it. A command that runs and fails is no error;
// one that takes longer than timeout is.
type Executor interface {
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (runtime.ExecResult, error)
}

// userAgentPrefix begins the User-Agent of requests; applications look for it.
const userAgentPrefix = "kube-probe/"

// maxBody is how much of an answer's body is read.
const maxBody = 10 << 10

// Port returns the number of a port that is given by number or by the name that the container declares for it.
func Port(port intstr.IntOrString, container *corev1.Container) (int, error) {
	number := port.IntValue()
	if port.Type == intstr.String {
		for i := range container.Ports {
			if container.Ports[i].Name == port.StrVal {
				number = int(container.Ports[i].ContainerPort)
			}
		}
	}
	if number < 1 || number > 65535 {
		return 0,
			fmt.Errorf("port %q of container %s is neither a number from 1 to 65535 nor the name of one of its ports",
				port.String(), container.Name)
	}
	return number, nil
}

// Address joins the host (the Pod's address if empty) and the port.
func Address(host, podIP string, port int) string {
	if host == "" {
		host = podIP
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// Request builds an HTTP GET. A Host header of the action becomes the request's host.
func Request(ctx context.Context, get *corev1.HTTPGetAction, container *corev1.Container, podIP,
	version string) (*http.Request, error) {
	port, err := Port(get.Port, container)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse("/" + strings.TrimLeft(get.Path, "/"))
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", get.Path, err)
	}
	target.Scheme = strings.ToLower(string(get.Scheme))
	if target.Scheme == "" {
		target.Scheme = "http"
	}
	target.Host = Address(get.Host, podIP, port)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("building the request: %w", err)
	}
	setHeaders(request, get.HTTPHeaders, version)
	return request, nil
}

// setHeaders sets the given headers, and the default ones that are not given; an empty value suppresses a default
// one.
func setHeaders(request *http.Request, headers []corev1.HTTPHeader, version string) {
	for _, header := range headers {
		request.Header.Add(header.Name, header.Value)
	}
	for name, value := range map[string]string{"User-Agent": userAgentPrefix + version, "Accept": "*/*"} {
		if _, ok := request.Header[name]; !ok {
			request.Header.Set(name, value)
		}
	}
	if accept := request.Header["Accept"]; len(accept) == 1 && accept[0] == "" {
		request.Header.Del("Accept")
	}
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host
	}
}

// Dialer returns a dialer whose connections leave no state behind when they close: a node opens many short ones.
func Dialer() *net.Dialer {
	return &net.Dialer{Control: func(_, _ string, connection syscall.RawConn) error {
		var err error
		controlErr := connection.Control(func(fd uintptr) {
			err = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 1})
		})
		if controlErr != nil {
			return controlErr
		}
		return err
	}}
}

// NewClient returns an HTTP client that connects directly to containers: no proxy, no reuse of connections, no
// verification of certificates. It follows redirects only to the same host; any other redirect is the answer.
func NewClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: Dialer().DialContext,
			// A node cannot know the certificates of containers.
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
			DisableKeepAlives:  true,
			DisableCompression: true,
		},
		CheckRedirect: func(request *http.Request, via []*http.Request) error {
			if request.URL.Hostname() != via[0].URL.Hostname() {
				return http.ErrUseLastResponse
			}
			if len(via) >= 10 {
				return fmt.Errorf("stopped after %d redirects", len(via))
			}
			return nil
		},
	}
}

// Do sends the request and returns the status code with the beginning of the body.
func Do(client *http.Client, request *http.Request) (code int, body string, err error) {
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return 0, "", fmt.Errorf("reading the answer: %w", err)
	}
	return response.StatusCode, string(data), nil
}
