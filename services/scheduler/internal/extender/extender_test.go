package extender

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

func asking(names ...corev1.ResourceName) corev1.Container {
	c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}
	for _, name := range names {
		c.Resources.Requests[name] = resource.MustParse("1")
	}
	return c
}

func TestWhoIsAsked(t *testing.T) {
	gpu := []schedulerv1.ExtenderManagedResource{{Name: "example.com/gpu"}, {Name: "example.com/nic"}}
	list := []schedulerv1.Extender{
		{FilterVerb: "f", ManagedResources: gpu},
		{PrioritizeVerb: "p"},
		{BindVerb: "b", ManagedResources: gpu[1:]},
		{PreemptVerb: "p", ManagedResources: gpu[:1]},
		{ManagedResources: gpu},
	}
	for name, test := range map[string]struct {
		spec   corev1.PodSpec
		asked  []int
		binder int
	}{
		"nothing managed": {corev1.PodSpec{Containers: []corev1.Container{asking("cpu")}}, []int{1}, -1},
		"the first": {corev1.PodSpec{Containers: []corev1.Container{asking(), asking("example.com/gpu")}},
			[]int{0, 1, 3}, -1},
		"the second, by an init container": {corev1.PodSpec{
			InitContainers: []corev1.Container{asking("example.com/nic")}}, []int{0, 1}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{Spec: test.spec}
			if got := Consulted(list, p); !slices.Equal(got, test.asked) {
				t.Errorf("asks %v, want %v", got, test.asked)
			}
			if i, ok := Binder(list, p); i != test.binder || ok != (test.binder >= 0) {
				t.Errorf("bound by %d, %v, want %d", i, ok, test.binder)
			}
		})
	}
}

func TestFiltered(t *testing.T) {
	list := func(names ...string) *corev1.NodeList {
		var out corev1.NodeList
		for _, name := range names {
			out.Items = append(out.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return &out
	}
	const words = "node(s) were refused by an extender"
	for name, test := range map[string]struct {
		result extenderv1.ExtenderFilterResult
		whole  bool
		left   []string
		failed map[string]string
		err    string
	}{
		"some by name": {result: extenderv1.ExtenderFilterResult{NodeNames: &[]string{"c", "a"},
			FailedNodes: map[string]string{"b": "full"}}, left: []string{"a", "c"},
			failed: map[string]string{"b": "full"}},
		"some whole": {result: extenderv1.ExtenderFilterResult{Nodes: list("b"), NodeNames: &[]string{"a"}},
			whole: true,
			left:  []string{"b"}, failed: map[string]string{"a": words, "c": words}},
		"whole to one who was told names": {result: extenderv1.ExtenderFilterResult{Nodes: list("b")},
			left: []string{"b"}, failed: map[string]string{"a": words, "c": words}},
		"none": {failed: map[string]string{"a": words, "b": words, "c": words}},
		"for good wins": {result: extenderv1.ExtenderFilterResult{NodeNames: &[]string{"b", "c"},
			FailedNodes:                map[string]string{"a": "now"},
			FailedAndUnresolvableNodes: map[string]string{"a": "for good"}},
			left: []string{"b", "c"}, failed: map[string]string{"a": "for good"}},
		"an error": {result: extenderv1.ExtenderFilterResult{NodeNames: &[]string{"a"}, Error: "no\nlicence "},
			err: "it says: no licence"},
		"a node of its own": {result: extenderv1.ExtenderFilterResult{NodeNames: &[]string{"a", "d"}},
			err: `it names node "d", about which it was not asked`},
		"a long reason": {result: extenderv1.ExtenderFilterResult{NodeNames: &[]string{"b", "c"},
			FailedNodes: map[string]string{"a": strings.Repeat("ä", 257)}},
			left: []string{"b", "c"}, failed: map[string]string{"a": strings.Repeat("ä", 256) + "..."}},
		"a reason of 256": {result: extenderv1.ExtenderFilterResult{NodeNames: &[]string{"b", "c"},
			FailedNodes: map[string]string{"a": strings.Repeat("x", 256)}},
			left: []string{"b", "c"}, failed: map[string]string{"a": strings.Repeat("x", 256)}},
	} {
		t.Run(name, func(t *testing.T) {
			left, failed, err := Filtered(&test.result, []string{"a", "b", "c"}, !test.whole)
			if !slices.Equal(left, test.left) || !maps.Equal(failed, test.failed) || text(err) != test.err {
				t.Errorf("left %q, failed %q, error %v", left, failed, err)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestScored(t *testing.T) {
	for name, test := range map[string]struct {
		list extenderv1.HostPriorityList
		want map[string]int64
		err  string
	}{
		"both bounds": {list: extenderv1.HostPriorityList{{Host: "a", Score: 10}, {Host: "b", Score: 0}},
			want: map[string]int64{"a": 307, "b": 0}},
		"one": {list: extenderv1.HostPriorityList{{Host: "b", Score: 1}}, want: map[string]int64{"a": 7,
			"b": 30}},
		"too good": {list: extenderv1.HostPriorityList{{Host: "a", Score: 1}, {Host: "b", Score: 11}},
			err: `it gives node "b" score 11, which must be from 0 to 10`},
		"too bad": {list: extenderv1.HostPriorityList{{Host: "b", Score: -1}},
			err: `it gives node "b" score -1, which must be from 0 to 10`},
		"a node of its own": {list: extenderv1.HostPriorityList{{Host: "c", Score: 1}},
			err: `it names node "c", about which it was not asked`},
		"a node twice": {list: extenderv1.HostPriorityList{{Host: "a", Score: 1}, {Host: "a", Score: 1}},
			err: "it gives a node two scores"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.err != "" {
				test.want = map[string]int64{"a": 7}
			}
			scores := map[string]int64{"a": 7}
			err := Scored(test.list, []string{"a", "b"}, 3, scores)
			if text(err) != test.err || !maps.Equal(scores, test.want) {
				t.Errorf("scores %v, error %v", scores, err)
			}
		})
	}
}

func TestSpared(t *testing.T) {
	asked := map[string]Victims{"a": {}, "b": {}}
	left, err := Spared(&extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{
		"a": {Pods: []*extenderv1.MetaPod{{UID: "1"}, nil}}, "b": nil}}, asked)
	if err != nil || len(left) != 2 || len(left["a"]) != 1 || left["a"][0] != "1" || len(left["b"]) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	_, err = Spared(&extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{
		"c": {}}}, asked)
	if text(err) != `it names node "c", about which it was not asked` {
		t.Errorf("error %v", err)
	}
}
