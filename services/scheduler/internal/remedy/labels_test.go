package remedy

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// The words of the tables.
var (
	pod        = rulestest.Pod
	node       = rulestest.Node
	selecting  = rulestest.Selecting
	requiring  = rulestest.Requiring
	expression = rulestest.Expression
	named      = rulestest.Named
	labelled   = rulestest.Labelled
)

// A node needs as few labels as can be, and none that are its own name.
func TestRelabel(t *testing.T) {
	set := func(pairs ...string) (out []Label) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, Label{Key: pairs[i], Value: pairs[i+1]})
		}
		return out
	}
	gone := func(key string) Label { return Label{Key: key, Gone: true} }
	both := func(a, b corev1.NodeSelectorTerm) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: append(a.MatchExpressions, b.MatchExpressions...),
			MatchFields: append(a.MatchFields, b.MatchFields...)}
	}
	const in, notIn, exists, absent = corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists,
		corev1.NodeSelectorOpDoesNotExist
	const greater, lower = corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt
	for _, r := range []struct {
		name string
		pod  *corev1.Pod
		want []Label
		ok   bool
	}{
		{"selector", pod("p", selecting("disk", "ssd")), set("disk", "ssd"), true},
		{"selector of another value", pod("p", selecting("have", "it")), set("have", "it"), true},
		{"selector that matches", pod("p", selecting("have", "yes")), nil, false},
		{"selector of a host", pod("p", selecting(corev1.LabelHostname, "b")), nil, false},
		{"in", pod("p", requiring(expression("disk", in, "ssd", "nvme"))), set("disk", "ssd"), true},
		{"exists", pod("p", requiring(expression("disk", exists))), set("disk", "true"), true},
		{"not in", pod("p", requiring(expression("have", notIn, "yes"))), []Label{gone("have")}, true},
		{"absent", pod("p", requiring(expression("have", absent))), []Label{gone("have")}, true},
		{"greater", pod("p", requiring(expression("cores", greater, "8"))), set("cores", "9"), true},
		{"lower", pod("p", requiring(expression("cores", lower, "8"))), set("cores", "7"), true},
		{"greater than no number", pod("p", requiring(expression("cores", greater, "many"))), nil, false},
		{"between", pod("p", requiring(both(expression("cores", greater, "8"), expression("cores", lower, "10")))),
			set("cores", "9"), true},
		{"between neighbours", pod("p", requiring(both(expression("cores", greater, "8"),
			expression("cores", lower, "9")))), nil, false},
		{"a contradiction", pod("p", requiring(both(expression("disk", exists), expression("disk", absent)))),
			nil, false},
		{"in, but not this one", pod("p", requiring(both(expression("disk", in, "ssd", "nvme"),
			expression("disk", notIn, "ssd")))), set("disk", "nvme"), true},
		{"two keys, sorted", pod("p", requiring(both(expression("b", exists), expression("a", in, "1")))),
			set("a", "1", "b", "true"), true},
		{"the term that asks for less", pod("p", requiring(both(expression("b", exists), expression("a", in, "1")),
			expression("c", exists))), set("c", "true"), true},
		{"a host", pod("p", requiring(expression(corev1.LabelHostname, in, "b"))), nil, false},
		{"a name", pod("p", requiring(named(in, "b"))), nil, false},
		{"a name and a label", pod("p", requiring(both(named(in, "a"), expression("disk", exists)))),
			set("disk", "true"), true},
		{"an empty term", pod("p", requiring(corev1.NodeSelectorTerm{})), nil, false},
		{"selector and term", pod("p", selecting("disk", "ssd"), requiring(expression("a", exists))),
			set("disk", "ssd", "a", "true"), true},
		{"a term against the selector", pod("p", selecting("disk", "ssd"), requiring(expression("disk", notIn, "ssd"))),
			nil, false},
	} {
		s := columns.New(1)
		s.SetNode(node("a", labelled("have", "yes")))
		got, ok := relabel(&r.pod.Spec, s.View(0))
		if ok != r.ok || ok && !reflect.DeepEqual(got, r.want) {
			t.Errorf("%s: %v, %v, want %v, %v", r.name, got, ok, r.want, r.ok)
		}
	}
}
