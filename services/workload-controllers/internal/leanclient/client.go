// Package leanclient writes Pods and statuses at little cost: a request is put together from few parts, and the server
// is asked for the metadata of what it wrote, of which only the name, the namespace, the UID and the version are
// decoded. That is all by which a write is recognised when the cache shows it.
//
//	client.go    the requests
//	answer.go    what comes back
//	pods.go      requests about Pods
//	statuses.go  requests about statuses
package leanclient

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// attempts is how often a request is made that the server asks to make again later: once and ten times more, as in
// client-go.
const attempts = 11

// Client makes requests. It is safe for concurrent use.
type Client struct {
	corev1client.PodsGetter // for what is not written here

	transport http.RoundTripper
	base      *url.URL
	// headers are those of requests, by the type of their bodies. They are never changed.
	headers map[string]http.Header
	buffers sync.Pool // of *bytes.Buffer
}

// New returns a client over the connection.
func New(config *rest.Config) (*Client, error) {
	typed, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the client: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("building the client: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("building the client: %w", err)
	}
	agent := config.UserAgent
	if agent == "" {
		agent = rest.DefaultKubernetesUserAgent()
	}
	c := &Client{PodsGetter: typed, transport: transport, base: base, headers: map[string]http.Header{},
		buffers: sync.Pool{New: func() any { return &bytes.Buffer{} }}}
	for _, body := range []string{runtime.ContentTypeProtobuf,
		string(types.StrategicMergePatchType), string(types.MergePatchType), string(types.JSONPatchType)} {
		c.headers[body] = http.Header{"Accept": {accepted}, "Content-Type": {body}, "User-Agent": {agent}}
	}
	return c, nil
}

// request is one about objects of a resource; without a name it is about those of the namespace.
type request struct {
	method                                string
	resource                              schema.GroupVersionResource
	namespace, name, subresource, manager string
	bodyType                              string
	body                                  []byte
}

func (c *Client) urlOf(r request) *url.URL {
	u := *c.base
	root := "/apis/" + r.resource.Group + "/"
	if r.resource.Group == "" {
		root = "/api/"
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + root + r.resource.Version + "/namespaces/" + r.namespace + "/" +
		r.resource.Resource
	if r.name != "" {
		u.Path += "/" + r.name
	}
	if r.subresource != "" {
		u.Path += "/" + r.subresource
	}
	if r.manager != "" {
		u.RawQuery = "fieldManager=" + url.QueryEscape(r.manager)
	}
	return &u
}

// do makes the request, and hands out the body of an answer that is no error. The body may not be kept.
func (c *Client) do(ctx context.Context, r request, answer func(body []byte) error) error {
	if faults := rest.IsValidPathSegmentName(r.namespace); r.namespace == "" || len(faults) > 0 {
		return fmt.Errorf("invalid namespace %q of one of the %s: %v", r.namespace, r.resource.Resource, faults)
	}
	to := c.urlOf(r)
	for attempt := 1; ; attempt++ {
		wait, err := c.try(ctx, r, to, attempt < attempts, answer)
		if wait < 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// try makes the request once; where the server asks for it and it may be made again, it returns how long to wait.
func (c *Client) try(ctx context.Context, r request, to *url.URL, again bool,
	answer func(body []byte) error) (wait time.Duration, err error) {
	content := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.body)), nil }
	sent := &http.Request{Method: r.method, URL: to, Host: to.Host, Header: c.headers[r.bodyType],
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(r.body)), GetBody: content}
	sent.Body, _ = content()
	response, err := c.transport.RoundTrip(sent.WithContext(ctx))
	if err != nil {
		return -1, fmt.Errorf("%s %s: %w", r.method, to.Path, err)
	}
	defer response.Body.Close()
	count(ctx, response.StatusCode, r.method, to.Host)
	buffer := c.buffers.Get().(*bytes.Buffer)
	defer c.buffers.Put(buffer)
	buffer.Reset()
	if _, err := buffer.ReadFrom(response.Body); err != nil {
		return -1, fmt.Errorf("reading the answer to %s %s: %w", r.method, to.Path, err)
	}
	if wait, asked := retryAfter(response); asked && again {
		return wait, nil
	}
	if response.StatusCode >= http.StatusOK && response.StatusCode < http.StatusMultipleChoices {
		return -1, answer(buffer.Bytes())
	}
	return -1, failure(response, r, buffer.Bytes())
}

// checkName keeps a request about one object from becoming one about all.
func checkName(kind, name string) error {
	if name == "" {
		return fmt.Errorf("the name of a %s may not be empty", kind)
	}
	if faults := rest.IsValidPathSegmentName(name); len(faults) > 0 {
		return fmt.Errorf("invalid name %q of a %s: %v", name, kind, faults)
	}
	return nil
}
