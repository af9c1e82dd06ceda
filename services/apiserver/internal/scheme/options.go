package scheme

import (
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

// addOptionConversions registers how the query parameters of connections to
// Pods, Nodes and Services become option objects.
func addOptionConversions(scheme *runtime.Scheme) error {
	add := []func(*runtime.Scheme) error{
		optionConversion(func(q query, o *corev1.PodExecOptions) {
			q.streams(&o.Stdin, &o.Stdout, &o.Stderr, &o.TTY)
			q.text("container", &o.Container)
			o.Command = q.values["command"]
		}),
		optionConversion(func(q query, o *corev1.PodAttachOptions) {
			q.streams(&o.Stdin, &o.Stdout, &o.Stderr, &o.TTY)
			q.text("container", &o.Container)
		}),
		optionConversion(readPodLogOptions),
		optionConversion(func(q query, o *corev1.PodPortForwardOptions) {
			for _, v := range q.values["ports"] {
				parse(q, "ports", v, runtime.Convert_Slice_string_To_int,
					func(port int) { o.Ports = append(o.Ports, int32(port)) })
			}
		}),
		optionConversion(func(q query, o *corev1.PodProxyOptions) { q.text("path", &o.Path) }),
		optionConversion(func(q query, o *corev1.NodeProxyOptions) { q.text("path", &o.Path) }),
		optionConversion(func(q query, o *corev1.ServiceProxyOptions) { q.text("path", &o.Path) }),
	}
	for _, f := range add {
		if err := f(scheme); err != nil {
			return err
		}
	}
	return nil
}

func readPodLogOptions(q query, o *corev1.PodLogOptions) {
	q.text("container", &o.Container)
	q.flag("follow", &o.Follow)
	q.flag("previous", &o.Previous)
	q.flag("timestamps", &o.Timestamps)
	q.flag("insecureSkipTLSVerifyBackend", &o.InsecureSkipTLSVerifyBackend)
	q.number("sinceSeconds", &o.SinceSeconds)
	q.number("tailLines", &o.TailLines)
	q.number("limitBytes", &o.LimitBytes)
	if v := q.values.Get("stream"); v != "" {
		o.Stream = &v
	}
	if v := q.values.Get("sinceTime"); v != "" {
		var t metav1.Time
		if err := t.UnmarshalQueryParameter(v); err != nil {
			q.fail("sinceTime", v, err)
			return
		}
		o.SinceTime = &t
	}
}

// query reads options out of url.Values and keeps the first error.
type query struct {
	values url.Values
	err    *error
}

func optionConversion[T any](read func(query, *T)) func(*runtime.Scheme) error {
	return func(scheme *runtime.Scheme) error {
		return scheme.AddConversionFunc((*url.Values)(nil), (*T)(nil), func(in, out any, _ conversion.Scope) error {
			var err error
			read(query{*in.(*url.Values), &err}, out.(*T))
			return err
		})
	}
}

func (q query) fail(name, value string, err error) {
	if *q.err == nil {
		*q.err = fmt.Errorf("query parameter %s is %q: %w", name, value, err)
	}
}

func (q query) text(name string, to *string) {
	if v := q.values.Get(name); v != "" {
		*to = v
	}
}

func (q query) flag(name string, to *bool) {
	if values := q.values[name]; len(values) > 0 {
		if err := runtime.Convert_Slice_string_To_bool(&values, to, nil); err != nil {
			q.fail(name, values[0], err)
		}
	}
}

func (q query) number(name string, to **int64) {
	if v := q.values.Get(name); v != "" {
		parse(q, name, v, runtime.Convert_Slice_string_To_int64, func(n int64) { *to = &n })
	}
}

func (q query) streams(stdin, stdout, stderr, tty *bool) {
	q.flag("stdin", stdin)
	q.flag("stdout", stdout)
	q.flag("stderr", stderr)
	q.flag("tty", tty)
}

func parse[N any](q query, name, value string, convert func(*[]string, *N, conversion.Scope) error, set func(N)) {
	var n N
	if err := convert(&[]string{value}, &n, nil); err != nil {
		q.fail(name, value, err)
		return
	}
	set(n)
}
