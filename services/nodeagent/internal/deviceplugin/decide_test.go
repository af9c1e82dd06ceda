package deviceplugin

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const led = corev1.ResourceName("example.com/led")

// podOf returns a Pod of containers such as "init a 1", "sidecar b 2" and "main c 0".
func podOf(uid types.UID, containers ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Name: string(uid), Namespace: "default"}}
	for _, text := range containers {
		words := strings.Fields(text)
		c := corev1.Container{Name: words[1], Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), led: resource.MustParse(words[2])}}}
		switch words[0] {
		case "sidecar":
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
			fallthrough
		case "init":
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		default:
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
	}
	return pod
}

// lights returns devices by ID; those with a trailing exclamation mark are unhealthy.
func lights(ids string) map[string]bool {
	out := map[string]bool{}
	for _, id := range strings.Fields(ids) {
		name, broken := strings.CutSuffix(id, "!")
		out[name] = !broken
	}
	return out
}

// Init containers leave their devices to later ones; sidecars and main containers keep theirs.
func TestAssign(t *testing.T) {
	for name, row := range map[string]struct {
		pod       []string
		has       string
		taken     string
		preferred map[string]string
		want      string // "container: IDs; ..." or an error
		asks      string // "container size of available must; ..."
	}{
		"the only one":  {[]string{"main c 1"}, "a", "", nil, "c: a", ""},
		"none wanted":   {[]string{"main c 0"}, "a", "", nil, "", ""},
		"one of two":    {[]string{"main c 1"}, "a b", "", nil, "c: a", "c 1 of a b must"},
		"all of two":    {[]string{"main c 2"}, "a b", "", nil, "c: a b", ""},
		"one is taken":  {[]string{"main c 1"}, "a b", "a", nil, "c: b", ""},
		"one is broken": {[]string{"main c 1"}, "a! b", "", nil, "c: b", ""},
		"all are broken": {[]string{"main c 1"}, "a!", "", nil,
			"no healthy devices present; cannot allocate unhealthy devices example.com/led", ""},
		"no devices": {[]string{"main c 1"}, "", "", nil,
			"no healthy devices present; cannot allocate unhealthy devices example.com/led", ""},
		"one too many": {[]string{"main c 3"}, "a b c!", "", nil,
			"requested number of devices unavailable for example.com/led. Requested: 3, Available: 2", ""},
		"two containers": {[]string{"main c 1", "main d 1"}, "a b", "", nil, "c: a; d: b", "c 1 of a b must"},
		"one for two": {[]string{"main c 1", "main d 1"}, "a", "", nil,
			"requested number of devices unavailable for example.com/led. Requested: 1, Available: 0", ""},
		"init before main": {[]string{"init i 1", "main c 1"}, "a", "", nil, "c: a; i: a", ""},
		"inits in turn":    {[]string{"init i 1", "init j 1", "main c 0"}, "a", "", nil, "i: a; j: a", ""},
		"init of more":     {[]string{"init i 2", "main c 1"}, "a b", "", nil, "c: a; i: a b", ""},
		"main of more": {[]string{"init i 1", "main c 2"}, "a b c", "", nil, "c: a b; i: a",
			"i 1 of a b c must; c 2 of a b c must a"},
		"init for two mains": {[]string{"init i 1", "main c 1", "main d 1"}, "a", "", nil,
			"requested number of devices unavailable for example.com/led. Requested: 1, Available: 0", ""},
		"a sidecar keeps": {[]string{"sidecar s 1", "main c 1"}, "a b", "", nil, "c: b; s: a", "s 1 of a b must"},
		"a sidecar of an init": {[]string{"init i 1", "sidecar s 1", "init j 1", "main c 1"}, "a b", "", nil,
			"c: b; i: a; j: b; s: a", "i 1 of a b must"},
		"no device for all sidecars": {[]string{"sidecar s 1", "init j 1"}, "a", "", nil,
			"requested number of devices unavailable for example.com/led. Requested: 1, Available: 0", ""},
		"preferred": {[]string{"main c 1"}, "a b", "", map[string]string{"c": "b"}, "c: b", ""},
		"preferred with what is left": {[]string{"init i 1", "main c 2"}, "a b c", "",
			map[string]string{"i": "b", "c": "c"}, "c: b c; i: b", ""},
		"a taken one is preferred":    {[]string{"main c 1"}, "a b", "b", map[string]string{"c": "b"}, "c: a", ""},
		"a broken one is preferred":   {[]string{"main c 1"}, "a b!", "", map[string]string{"c": "b"}, "c: a", ""},
		"an unknown one is preferred": {[]string{"main c 1"}, "a b", "", map[string]string{"c": "z"}, "c: a", ""},
		"too few are preferred":       {[]string{"main c 2"}, "a b c", "", map[string]string{"c": "c"}, "c: a c", ""},
		"too many are preferred":      {[]string{"main c 1"}, "a b c", "", map[string]string{"c": "c b"}, "c: c", ""},
		"one is preferred twice": {[]string{"main c 2"}, "a b c", "", map[string]string{"c": "c c"},
			"c: a c", ""},
		"what another container has is": {[]string{"main c 1", "main d 1"}, "a b c", "",
			map[string]string{"c": "b", "d": "b"}, "c: b; d: a", ""},
	} {
		in := request{Pod: podOf("p", row.pod...), Stock: stock{led: lights(row.has)},
			Taken: set{led: lights(row.taken)}, Preferred: map[choice][]string{}}
		for container, ids := range row.preferred {
			in.Preferred[choice{container, led}] = strings.Fields(ids)
		}
		allocation, questions, err := assign(in)
		var got, asks []string
		for _, container := range slices.Sorted(maps.Keys(allocation)) {
			got = append(got, container+": "+strings.Join(allocation[container][led], " "))
		}
		if err != nil {
			got = []string{err.Error()}
		}
		for _, q := range questions {
			asks = append(asks, strings.TrimSpace(strings.Join([]string{q.Container, resource.NewQuantity(int64(q.Size),
				resource.DecimalSI).String(), "of", strings.Join(q.Available, " "), "must",
				strings.Join(q.Must, " ")}, " ")))
		}
		if strings.Join(got, "; ") != row.want || strings.Join(asks, "; ") != row.asks {
			t.Errorf("%s: %q asking %q, want %q asking %q", name, strings.Join(got, "; "), strings.Join(asks, "; "),
				row.want, row.asks)
		}
	}
}

// A resource without a plugin is left to others, and the resource of a plugin is not.
func TestOnlyResourcesOfPlugins(t *testing.T) {
	for _, has := range []stock{nil, {"example.com/other": lights("a")}} {
		if got, _, err := assign(request{Pod: podOf("p", "main c 9"), Stock: has}); len(got) != 0 || err != nil {
			t.Errorf("with %v it gets %v, %v", has, got, err)
		}
	}
}

func TestFileOfAResource(t *testing.T) {
	for _, name := range []corev1.ResourceName{led, "a.b/c_d.e-F"} {
		if file := fileName(name); strings.Contains(file, "/") || resourceOf(file) != name {
			t.Errorf("%s is %s, which is %s", name, file, resourceOf(file))
		}
	}
}
