package pod

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/nodeproxy"
)

func TestChooseContainer(t *testing.T) {
	pod := func(main, inits, ephemeral string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		for _, name := range strings.Fields(main) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name})
		}
		for _, name := range strings.Fields(inits) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name})
		}
		for _, name := range strings.Fields(ephemeral) {
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers,
				corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name}})
		}
		return p
	}
	rows := []struct {
		name, choice, want, err string
		pod                     *corev1.Pod
	}{
		{"POD-106 the only one", "", "a", "", pod("a", "i", "e")},
		{"by name", "b", "b", "", pod("a b", "", "")},
		{"POD-224 an init container", "i", "i", "", pod("a b", "i", "")},
		{"SAF-017 an ephemeral container", "e", "e", "", pod("a b", "i", "e")},
		{"one of several", "", "", "a container name must be specified for pod p, choose one of: [a b]",
			pod("a b", "", "")},
		{"one of several, also init containers", "", "", "a container name must be specified for pod p, choose one " +
			"of: [a b] or one of the init containers: [i j]", pod("a b", "i j", "")},
		{"none at all", "", "", "a container name must be specified for pod p", pod("", "", "")},
		{"unknown", "x", "", "container x is not valid for pod p", pod("a", "", "")},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, err := chooseContainer(row.pod, row.choice)
			if got != row.want || (err == nil) != (row.err == "") || (err != nil && err.Error() != row.err) {
				t.Errorf("got %q and %v", got, err)
			}
		})
	}
}

func TestValidateLogOptions(t *testing.T) {
	rows := []struct {
		name    string
		options corev1.PodLogOptions
		want    []string
	}{
		{"nothing", corev1.PodLogOptions{}, nil},
		{"everything", corev1.PodLogOptions{TailLines: ptr.To[int64](0), LimitBytes: ptr.To[int64](1),
			SinceSeconds: ptr.To[int64](1), Stream: ptr.To("All")}, nil},
		{"one stream", corev1.PodLogOptions{Stream: ptr.To("Stderr")}, nil},
		{"out of range", corev1.PodLogOptions{TailLines: ptr.To[int64](-1), LimitBytes: ptr.To[int64](0),
			SinceSeconds: ptr.To[int64](0)}, []string{
			`limitBytes: Invalid value: 0: must be greater than 0`,
			`sinceSeconds: Invalid value: 0: must be greater than 0`,
			`tailLines: Invalid value: -1: must be greater than or equal to 0`}},
		{"two beginnings", corev1.PodLogOptions{SinceSeconds: ptr.To[int64](1), SinceTime: &now},
			[]string{"[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"}},
		{"unknown stream", corev1.PodLogOptions{Stream: ptr.To("stdout")},
			[]string{`stream: Unsupported value: "stdout": supported values: "All", "Stderr", "Stdout"`}},
		{"the last lines of one stream", corev1.PodLogOptions{Stream: ptr.To("Stdout"), TailLines: ptr.To[int64](1)},
			[]string{"[]: Forbidden: `tailLines` and specific `stream` are mutually exclusive for now"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) { wantErrors(t, ValidateLogOptions(&row.options), row.want...) })
	}
}

func TestOpened(t *testing.T) {
	type streams = nodeproxy.Streams
	for given, want := range map[streams]streams{
		{}:                                      {Stdout: true, Stderr: true},
		{Stdin: true}:                           {Stdin: true},
		{Stdout: true, Stderr: true, TTY: true}: {Stdout: true, TTY: true},
		{TTY: true}:                             {Stdout: true, TTY: true},
		{Stdin: true, Stdout: true}:             {Stdin: true, Stdout: true},
		{Stdin: true, Stdout: true, Stderr: true}: {Stdin: true, Stdout: true, Stderr: true},
	} {
		if got := opened(given); got != want {
			t.Errorf("%+v opens %+v, want %+v", given, got, want)
		}
	}
}

func TestBind(t *testing.T) {
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"},
		Labels: map[string]string{"c": "d"}}, Target: corev1.ObjectReference{Name: "node-2"}}
	rows := []struct {
		name   string
		change func(*corev1.Pod)
		err    string
	}{
		{"POD-025 a Pod without a node", func(p *corev1.Pod) { p.Spec.NodeName = "" }, ""},
		{"POD-026 SAF-121 SAF-125 a Pod with a node", func(*corev1.Pod) {},
			`pod nginx is already assigned to node "node-1"`},
		{"POD-026 the same node again", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" },
			`pod nginx is already assigned to node "node-2"`},
		{"a Pod that goes away", func(p *corev1.Pod) { p.Spec.NodeName, p.DeletionTimestamp = "", &now },
			`pod nginx is being deleted, cannot be assigned to a host`},
		{"POD-030 a Pod that waits", func(p *corev1.Pod) {
			p.Spec.NodeName, p.Spec.SchedulingGates = "", []corev1.PodSchedulingGate{{Name: "a"}}
		},
			`pod nginx has non-empty .spec.schedulingGates`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := nginx()
			p.Status.NominatedNodeName = "node-3"
			row.change(p)
			before := p.DeepCopy()
			err := bind(p, binding, now)
			if row.err != "" {
				if err == nil || err.Error() != row.err || p.String() != before.String() {
					t.Errorf("got %v, want %q", err, row.err)
				}
				return
			}
			if err != nil || p.Spec.NodeName != "node-2" || p.Annotations["a"] != "b" || p.Labels["c"] != "d" ||
				p.Status.NominatedNodeName != "" || !hasCondition(&p.Status, corev1.PodScheduled) {
				t.Errorf("got %v and %+v", err, p)
			}
		})
	}
}

func TestValidateBinding(t *testing.T) {
	wantErrors(t, ValidateBinding(&corev1.Binding{Target: corev1.ObjectReference{Name: "n"}}))
	wantErrors(t, ValidateBinding(&corev1.Binding{Target: corev1.ObjectReference{Kind: "Machine"}}),
		`target.kind: Unsupported value: "Machine": supported values: "Node", "<empty>"`, `target.name: Required value`)
}
