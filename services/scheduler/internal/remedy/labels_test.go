package remedy

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/columns"
	. "keelson.dev/services/scheduler/internal/rulestest"
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
		{"selector", Pod("p", Selecting("disk", "ssd")), set("disk", "ssd"), true},
		{"selector of another value", Pod("p", Selecting("have", "it")), set("have", "it"), true},
		{"selector that matches", Pod("p", Selecting("have", "yes")), nil, false},
		{"selector of a host", Pod("p", Selecting(corev1.LabelHostname, "b")), nil, false},
		{"in", Pod("p", Requiring(Expression("disk", in, "ssd", "nvme"))), set("disk", "ssd"), true},
		{"exists", Pod("p", Requiring(Expression("disk", exists))), set("disk", "true"), true},
		{"not in", Pod("p", Requiring(Expression("have", notIn, "yes"))), []Label{gone("have")}, true},
		{"absent", Pod("p", Requiring(Expression("have", absent))), []Label{gone("have")}, true},
		{"greater", Pod("p", Requiring(Expression("cores", greater, "8"))), set("cores", "9"), true},
		{"lower", Pod("p", Requiring(Expression("cores", lower, "8"))), set("cores", "7"), true},
		{"greater than no number", Pod("p", Requiring(Expression("cores", greater, "many"))), nil, false},
		{"between", Pod("p", Requiring(both(Expression("cores", greater, "8"), Expression("cores", lower, "10")))),
			set("cores", "9"), true},
		{"between neighbours", Pod("p", Requiring(both(Expression("cores", greater, "8"),
			Expression("cores", lower, "9")))), nil, false},
		{"a contradiction", Pod("p", Requiring(both(Expression("disk", exists), Expression("disk", absent)))), nil, false},
		{"in, but not this one", Pod("p", Requiring(both(Expression("disk", in, "ssd", "nvme"),
			Expression("disk", notIn, "ssd")))), set("disk", "nvme"), true},
		{"two keys, sorted", Pod("p", Requiring(both(Expression("b", exists), Expression("a", in, "1")))),
			set("a", "1", "b", "true"), true},
		{"the term that asks for less", Pod("p", Requiring(both(Expression("b", exists), Expression("a", in, "1")),
			Expression("c", exists))), set("c", "true"), true},
		{"a host", Pod("p", Requiring(Expression(corev1.LabelHostname, in, "b"))), nil, false},
		{"a name", Pod("p", Requiring(Named(in, "b"))), nil, false},
		{"a name and a label", Pod("p", Requiring(both(Named(in, "a"), Expression("disk", exists)))), set("disk", "true"),
			true},
		{"an empty term", Pod("p", Requiring(corev1.NodeSelectorTerm{})), nil, false},
		{"selector and term", Pod("p", Selecting("disk", "ssd"), Requiring(Expression("a", exists))),
			set("disk", "ssd", "a", "true"), true},
		{"a term against the selector", Pod("p", Selecting("disk", "ssd"), Requiring(Expression("disk", notIn, "ssd"))),
			nil, false},
	} {
		s := columns.New(1)
		s.SetNode(Node("a", Labelled("have", "yes")))
		got, ok := relabel(&r.pod.Spec, s.View(0))
		if ok != r.ok || ok && !reflect.DeepEqual(got, r.want) {
			t.Errorf("%s: %v, %v, want %v, %v", r.name, got, ok, r.want, r.ok)
		}
	}
}
