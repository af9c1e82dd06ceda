package pod

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericstream "k8s.io/apiserver/pkg/registry/generic/rest"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/nodeproxy"
)

// podSource reads Pods for the connections to their containers.
type podSource struct{ genericrest.Getter }

func (s podSource) pod(ctx context.Context, name string) (*corev1.Pod, error) {
	obj, err := s.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("connecting to pod %s: unexpected object %T", name, obj))
	}
	return p, nil
}

// Log is pods/log: it streams what a container wrote.
type Log struct {
	pods  podSource
	nodes *nodeproxy.Nodes
}

var (
	_ genericrest.GetterWithOptions = &Log{}
	_ genericrest.StorageMetadata   = &Log{}
)

// New returns an empty Pod, the object whose log this is.
func (l *Log) New() runtime.Object { return &corev1.Pod{} }

// Destroy leaves the store, which belongs to the Pods, open.
func (l *Log) Destroy() {}

// ProducesMIMETypes tells that the answer is text, in place of an API object.
func (l *Log) ProducesMIMETypes(string) []string { return []string{"text/plain"} }

// ProducesObject tells the documentation what the answer is.
func (l *Log) ProducesObject(string) any { return "" }

// NewGetOptions returns the options that the query is read into.
func (l *Log) NewGetOptions() (runtime.Object, bool, string) {
	return &corev1.PodLogOptions{}, false, ""
}

// Get returns a stream of the log, or nothing while the Pod has no node.
func (l *Log) Get(ctx context.Context, name string, opts runtime.Object) (runtime.Object, error) {
	options, ok := opts.(*corev1.PodLogOptions)
	if !ok {
		return nil, fmt.Errorf("reading the log of pod %s: unexpected options %T", name, opts)
	}
	if errs := ValidateLogOptions(options); len(errs) > 0 {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PodLogOptions").GroupKind(), name, errs)
	}
	p, err := l.pods.pod(ctx, name)
	if err != nil {
		return nil, err
	}
	container, err := chooseContainer(p, options.Container)
	if err != nil {
		return nil, err
	}
	if p.Spec.NodeName == "" {
		return &genericstream.LocationStreamer{}, nil
	}
	agent, err := l.nodes.Agent(ctx, p.Spec.NodeName, options.InsecureSkipTLSVerifyBackend)
	if err != nil {
		return nil, err
	}
	return &logStream{node: p.Spec.NodeName, LocationStreamer: genericstream.LocationStreamer{
		Location:        agent.At(nodeproxy.LogLocation(p, container, options)),
		Transport:       agent.Transport,
		ContentType:     "text/plain",
		Flush:           options.Follow,
		ResponseChecker: genericstream.NewGenericHttpResponseChecker(corev1.Resource("pods/log"), name),
		RedirectChecker: genericstream.PreventRedirects,
	}}, nil
}

// logStream is a log as the node's agent sends it.
type logStream struct {
	genericstream.LocationStreamer
	node string
}

// InputStream implements the API machinery's ResourceStreamer.
func (s *logStream) InputStream(ctx context.Context, apiVersion, acceptHeader string) (io.ReadCloser, bool, string,
	error) {
	stream, flush, contentType, err := s.LocationStreamer.InputStream(ctx, apiVersion, acceptHeader)
	if stream != nil {
		stream = &endAlone{ReadCloser: stream}
	}
	return stream, flush, contentType, nodeproxy.Unreachable(s.node, err)
}

// endAlone tells of the end in a read of its own, never together with the last bytes: what the API machinery sends over
// a WebSocket leaves out the bytes that come with the end, which of a short log are all.
type endAlone struct {
	io.ReadCloser
	end error
}

// Read implements io.Reader.
func (e *endAlone) Read(buffer []byte) (int, error) {
	if e.end != nil {
		return 0, e.end
	}
	n, err := e.ReadCloser.Read(buffer)
	if n > 0 && err != nil {
		e.end, err = err, nil
	}
	return n, err
}

var logStreams = []string{corev1.LogStreamAll, corev1.LogStreamStderr, corev1.LogStreamStdout}

// ValidateLogOptions checks which part of a log is asked for.
func ValidateLogOptions(o *corev1.PodLogOptions) field.ErrorList {
	var errs field.ErrorList
	if o.TailLines != nil && *o.TailLines < 0 {
		errs = append(errs, field.Invalid(field.NewPath("tailLines"), *o.TailLines,
			"must be greater than or equal to 0"))
	}
	if o.LimitBytes != nil && *o.LimitBytes < 1 {
		errs = append(errs, field.Invalid(field.NewPath("limitBytes"), *o.LimitBytes, "must be greater than 0"))
	}
	switch {
	case o.SinceSeconds != nil && o.SinceTime != nil:
		errs = append(errs, field.Forbidden(field.NewPath(""),
			"at most one of `sinceTime` or `sinceSeconds` may be specified"))
	case o.SinceSeconds != nil && *o.SinceSeconds < 1:
		errs = append(errs, field.Invalid(field.NewPath("sinceSeconds"), *o.SinceSeconds, "must be greater than 0"))
	}
	if o.Stream == nil || *o.Stream == corev1.LogStreamAll {
		return errs
	}
	if *o.Stream != corev1.LogStreamStdout && *o.Stream != corev1.LogStreamStderr {
		return append(errs, field.NotSupported(field.NewPath("stream"), *o.Stream, logStreams))
	}
	if o.TailLines != nil {
		errs = append(errs, field.Forbidden(field.NewPath(""),
			"`tailLines` and specific `stream` are mutually exclusive for now"))
	}
	return errs
}
