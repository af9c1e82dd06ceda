package csinode

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/nodeagent/internal/csiplugin"
)

func driver(name, id, rack string, most int32) csiplugin.Identity {
	d := csiplugin.Identity{Name: name, NodeID: id, MaxVolumes: most}
	if rack != "" {
		d.Topology = map[string]string{"example.com/rack": rack}
	}
	return d
}

func listed(names ...string) *storagev1.CSINode {
	out := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for _, name := range names {
		out.Spec.Drivers = append(out.Spec.Drivers, storagev1.CSINodeDriver{Name: name, NodeID: "1"})
	}
	return out
}

func of(drivers ...csiplugin.Identity) []csiplugin.Identity { return drivers }

func TestNext(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}
	for name, row := range map[string]struct {
		old     *storagev1.CSINode
		drivers []csiplugin.Identity
		toCome  string
		want    string
	}{
		"no drivers": {want: ""},
		"the first":  {drivers: []csiplugin.Identity{driver("a", "1", "", 7)}, want: "a:1:7"},
		"one more": {old: listed("a"), drivers: of(driver("a", "1", "", 0), driver("b", "2", "", 0)),
			want: "a:1 b:2"},
		"one has gone":      {old: listed("a", "b"), drivers: of(driver("b", "1", "", 0)), want: "b:1"},
		"one is to come":    {old: listed("a", "b"), toCome: "a", want: "a:1"},
		"another ID":        {old: listed("a", "b"), drivers: of(driver("a", "2", "", 0)), toCome: "b", want: "b:1"},
		"the step after it": {old: listed("b"), drivers: of(driver("a", "2", "", 0)), toCome: "b", want: "b:1 a:2"},
		"other keys":        {old: listed("a"), drivers: []csiplugin.Identity{driver("a", "1", "r", 0)}, want: ""},
		"another count":     {old: listed("a"), drivers: []csiplugin.Identity{driver("a", "1", "", 3)}, want: "a:1:3"},
	} {
		before := row.old.DeepCopy()
		out := next(row.old, node, row.drivers, func(d string) bool { return d == row.toCome })
		var got []string
		for _, d := range out.Spec.Drivers {
			text := d.Name + ":" + d.NodeID
			if d.Allocatable != nil {
				text += ":" + strconv.Itoa(int(*d.Allocatable.Count))
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != row.want {
			t.Errorf("%s: %q, want %q", name, text, row.want)
		}
		if owner := out.OwnerReferences; len(owner) != 1 || owner[0].UID != "u" || owner[0].Kind != "Node" {
			t.Errorf("%s: owned by %v", name, owner)
		}
		if row.old != nil && !slices.Equal(names(before), names(row.old)) {
			t.Errorf("%s: the input has changed", name)
		}
	}
}

func names(n *storagev1.CSINode) (out []string) {
	for _, d := range n.Spec.Drivers {
		out = append(out, d.Name)
	}
	return out
}

func TestDescribe(t *testing.T) {
	const ids = `{"a":"1"}`
	a := []storagev1.CSINodeDriver{{Name: "a", NodeID: "1"}}
	for name, row := range map[string]struct {
		labels, annotations map[string]string
		listed              []storagev1.CSINodeDriver
		drivers             []csiplugin.Identity
		wantLabels          map[string]string
		wantIDs             string
		nothing             bool
		err                 string
	}{
		"no drivers": {nothing: true},
		"the first": {listed: a, drivers: []csiplugin.Identity{driver("a", "1", "r1", 0)},
			wantLabels: map[string]string{"example.com/rack": "r1"}, wantIDs: ids},
		"known": {labels: map[string]string{"example.com/rack": "r1"}, annotations: map[string]string{nodeIDs: ids},
			listed: a, drivers: []csiplugin.Identity{driver("a", "1", "r1", 0)}, nothing: true},
		"elsewhere": {labels: map[string]string{"example.com/rack": "r2"}, annotations: map[string]string{nodeIDs: ids},
			listed: a, drivers: []csiplugin.Identity{driver("a", "1", "r1", 0)}, nothing: true,
			err: `label example.com/rack of the node is "r2": CSI driver a says that it must be "r1"`},
		"two that differ": {drivers: []csiplugin.Identity{driver("a", "1", "r1", 0), driver("b", "1", "r2", 0)},
			wantLabels: map[string]string{"example.com/rack": "r1"}, err: "CSI driver b says"},
		"the last has gone": {labels: map[string]string{"example.com/rack": "r1"},
			annotations: map[string]string{nodeIDs: ids}},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: row.labels, Annotations: row.annotations}}
		got, err := describe(node, row.listed, row.drivers)
		if (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %v, want %q", name, err, row.err)
		}
		if row.nothing || got == nil {
			if !row.nothing || got != nil {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if !maps.Equal(got.Labels, row.wantLabels) || got.Annotations[nodeIDs] != row.wantIDs {
			t.Errorf("%s: %v %v", name, got.Labels, got.Annotations)
		}
	}
	gone := merge(&metav1.ObjectMeta{Annotations: map[string]string{nodeIDs: ""}})
	if v, has := gone["metadata"].(map[string]any)["annotations"].(map[string]any)[nodeIDs]; v != nil || !has {
		t.Errorf("an annotation is taken away by %v", gone)
	}
}
