package eventratelimit

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	apiuser "k8s.io/apiserver/pkg/authentication/user"
)

const head = "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n"

// Of each type so many pass as may come at once, and those of others do not count.
func TestLimits(t *testing.T) {
	request := func(by, in, about string, dry bool) admission.Attributes {
		e := &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: about}}
		return admission.NewAttributesRecord(e, nil, corev1.SchemeGroupVersion.WithKind("Event"), in, "e",
			corev1.SchemeGroupVersion.WithResource("events"), "", admission.Create, nil, dry,
			&apiuser.DefaultInfo{Name: by})
	}
	for of, others := range map[limitType][]admission.Attributes{
		server:          nil,
		namespace:       {request("ann", "other", "p", false)},
		user:            {request("bob", "here", "p", false)},
		sourceAndObject: {request("ann", "here", "q", false)},
	} {
		p, err := newPlugin(fmt.Appendf(nil, head+"limits: [{type: %s, qps: 1, burst: 3}]", of))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if err := p.Validate(t.Context(), request("ann", "here", "p", false), nil); err != nil {
				t.Errorf("%s: Event %d: %v", of, i, err)
			}
		}
		if err := p.Validate(t.Context(), request("ann", "here", "p", false), nil); !apierrors.IsTooManyRequests(err) {
			t.Errorf("%s: one more: %v", of, err)
		}
		if err := p.Validate(t.Context(), request("ann", "here", "p", true), nil); err != nil {
			t.Errorf("%s: a dry run: %v", of, err)
		}
		for _, other := range others {
			if err := p.Validate(t.Context(), other, nil); err != nil {
				t.Errorf("%s: another: %v", of, err)
			}
		}
	}
}

func TestConfiguration(t *testing.T) {
	const one = "limits: [{type: User, qps: 1, burst: 1"
	for text, want := range map[string]string{
		"limits: [{type: Server, qps: 1, burst: 1}, {type: User, qps: 5, burst: 9, cacheSize: 7}]": "",
		"limits: []": "limits: Required value",
		"limits: [{type: Server, qps: 0, burst: 1}]": "limits[0].qps: Invalid value: 0",
		"limits: [{type: Server, qps: 1, burst: 0}]": "limits[0].burst: Invalid value: 0",
		one + ", cacheSize: -1}]":                    "limits[0].cacheSize: Invalid value: -1",
		"limits: [{type: Node, qps: 1, burst: 1}]":   "limits[0].type: Unsupported value",
		one + "}, {type: User, qps: 1, burst: 1}]":   "limits[1].type: Duplicate value",
		"limit: []": "limit: Configuration has no such field",
	} {
		err := Check([]byte(head + text))
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if err := Check(nil); err == nil {
		t.Error("it may be without limits")
	}
}
