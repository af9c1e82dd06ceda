package podnodeselector

import (
	"errors"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestDecide(t *testing.T) {
	type set = map[string]string
	for _, row := range []struct {
		name                    string
		pod, namespace, allowed set
		want                    set
		refused                 error
	}{
		{"nothing", nil, nil, nil, nil, nil},
		{"the namespace's", nil, set{"a": "b"}, nil, set{"a": "b"}, nil},
		{"both", set{"c": "d"}, set{"a": "b"}, nil, set{"a": "b", "c": "d"}, nil},
		{"the same", set{"a": "b"}, set{"a": "b"}, nil, set{"a": "b"}, nil},
		{"another one", set{"a": "c"}, set{"a": "b"}, nil, nil, errConflict},
		{"allowed", set{"c": "d"}, set{"a": "b"}, set{"a": "b", "c": "d"}, set{"a": "b", "c": "d"}, nil},
		{"not allowed", set{"c": "d"}, set{"a": "b"}, set{"a": "b"}, set{"a": "b", "c": "d"}, errForbidden},
		{"another value than is allowed", set{"c": "d"}, nil, set{"c": "e"}, set{"c": "d"}, errForbidden},
	} {
		got, err := merge(row.pod, row.namespace)
		if err == nil {
			if !maps.Equal(got, row.want) {
				t.Errorf("%s: %v", row.name, got)
			}
			err = check(got, row.namespace, row.allowed)
		} else if check(row.pod, row.namespace, row.allowed) == nil {
			t.Errorf("%s: what cannot be merged passes", row.name)
		}
		if !errors.Is(err, row.refused) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestOfNamespace(t *testing.T) {
	byDefault := labels.Set{"a": "b"}
	of := func(annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: annotations}}
	}
	if got, err := ofNamespace(of(nil), byDefault); err != nil || got.String() != "a=b" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ofNamespace(of(map[string]string{annotation: ""}), byDefault); err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ofNamespace(of(map[string]string{annotation: "c=d"}), byDefault); err != nil || got["c"] != "d" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := ofNamespace(of(map[string]string{annotation: "c"}), byDefault); err == nil {
		t.Error("no labels are taken")
	}
}

func TestConfiguration(t *testing.T) {
	got, err := parse([]byte("podNodeSelectorPluginConfig:\n  clusterDefaultNodeSelector: a=b\n  team: c=d,e=f\n"))
	if err != nil || got[everywhere]["a"] != "b" || got["team"]["e"] != "f" {
		t.Errorf("%v, %v", got, err)
	}
	if err := Check(nil); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"podNodeSelectorPluginConfig: {team: c}": "podNodeSelectorPluginConfig.team: ",
		"other: {}":                              "podNodeSelectorPluginConfig: labels by namespace are wanted",
	} {
		if err := Check([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
