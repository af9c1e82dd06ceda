package staticpods

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const node = "node-1.example"

// text returns a manifest of a Pod whose content differs by its version.
func text(name, version string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: kube-system, labels: {version: "%s"}}
spec: {containers: [{name: main, image: "image:%s"}]}
`, name, version, version)
}

func podOf(t *testing.T, manifest string) *corev1.Pod {
	t.Helper()
	pod, _, err := File{Data: []byte(manifest)}.pod(node)
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// The outcome for files and running Pods: one row for each way in which a file may change.
func TestDecide(t *testing.T) {
	broken := `{"apiVersion": "v1", "kind": "Po`
	for _, r := range []struct {
		name string
		// files and runs are "file=pod:version"; runs with a trailing "!" are being ended.
		files, runs []string
		broken      string
		// want lists what is stopped, started and renamed, and the files with problems.
		want string
	}{
		{"nothing", nil, nil, "", ""},
		{"SET-161 a new file", []string{"a=web:1"}, nil, "", "start web:1 of a"},
		{"POD-064 nothing has changed", []string{"a=web:1"}, []string{"a=web:1"}, "", ""},
		{"POD-064 the file is gone", nil, []string{"a=web:1"}, "", "stop web:1"},
		{"another content waits for the end of the first", []string{"a=web:2"}, []string{"a=web:1"}, "", "stop web:1"},
		{"another content, and the first is ending", []string{"a=web:2"}, []string{"a=web:1!"}, "", ""},
		{"another content, and the first has ended", []string{"a=web:2"}, nil, "", "start web:2 of a"},
		{"the file is back while its Pod is ending", []string{"a=web:1"}, []string{"a=web:1!"}, "", ""},
		{"another name in the file", []string{"a=new:1"}, []string{"a=web:1"}, "", "stop web:1; start new:1 of a"},
		{"the file has another name", []string{"b=web:1"}, []string{"a=web:1"}, "", "web:1 from b"},
		{"a damaged file keeps its Pod", nil, []string{"a=web:1"}, "a", "say a"},
		{"a damaged file of a Pod that is ending", nil, []string{"a=web:1!"}, "a", "say a"},
		{"a damaged file that never was a Pod", nil, nil, "a", "say a"},
		{"a damaged file, and a Pod of the name in another one", []string{"b=web:2"},
			[]string{"a=web:1"}, "a", "say a; say b"},
		{"two files of one Pod", []string{"a=web:1", "b=web:1"}, nil, "", "start web:1 of a; say b"},
		{"two files of one name: the first", []string{"a=web:1", "b=web:2"}, nil, "", "start web:1 of a; say b"},
		{"two files of one name: the one that runs", []string{"a=web:1", "b=web:2"}, []string{"b=web:2"}, "", "say a"},
	} {
		t.Run(r.name, func(t *testing.T) {
			uids := map[types.UID]string{}
			parse := func(entry string) (file string, pod *corev1.Pod) {
				file, what, _ := strings.Cut(strings.TrimSuffix(entry, "!"), "=")
				name, version, _ := strings.Cut(what, ":")
				pod = podOf(t, text(name, version))
				uids[pod.UID] = what
				return file, pod
			}
			var files []File
			if r.broken != "" {
				files = append(files, File{Name: r.broken, Data: []byte(broken)})
			}
			for _, entry := range r.files {
				file, _ := parse(entry)
				_, what, _ := strings.Cut(entry, "=")
				name, version, _ := strings.Cut(what, ":")
				files = append(files, File{Name: file, Data: []byte(text(name, version))})
			}
			var running []Instance
			for _, entry := range r.runs {
				file, pod := parse(entry)
				running = append(running, Instance{File: file, Pod: pod, Stopping: strings.HasSuffix(entry, "!")})
			}
			if got := describe(decide(files, running, node), uids); got != r.want {
				t.Errorf("got %q, want %q", got, r.want)
			}
		})
	}
}

func describe(p plan, uids map[types.UID]string) string {
	var out []string
	for _, uid := range p.Stop {
		out = append(out, "stop "+uids[uid])
	}
	for _, i := range p.Start {
		out = append(out, "start "+uids[i.Pod.UID]+" of "+i.File)
	}
	for uid, file := range p.From {
		out = append(out, uids[uid]+" from "+file)
	}
	for _, problem := range p.Problems {
		out = append(out, "say "+problem.File)
	}
	return strings.Join(out, "; ")
}

// TestComplete checks the fields of a static Pod. POD-066
func TestComplete(t *testing.T) {
	pod := podOf(t, `
apiVersion: v1
kind: Pod
metadata:
  name: web
  uid: chosen
  resourceVersion: "7"
  finalizers: [a/b]
  ownerReferences: [{apiVersion: v1, kind: Node, name: a, uid: u}]
  annotations: {kubernetes.io/config.mirror: x, kubernetes.io/config.hash: x, mine: kept}
spec:
  nodeName: elsewhere
  priorityClassName: system-node-critical
  containers: [{name: main, image: "i:1", ports: [{containerPort: 80}]}]
status: {phase: Failed}
`)
	want := metav1.ObjectMeta{Name: "web-node-1.example", Namespace: "default", UID: pod.UID,
		Annotations: map[string]string{"kubernetes.io/config.source": "file",
			"kubernetes.io/config.hash": string(pod.UID),
			"mine":                      "kept"}}
	if got := fmt.Sprint(pod.ObjectMeta); got != fmt.Sprint(want) {
		t.Errorf("the metadata is\n%s, want\n%s", got, fmt.Sprint(want))
	}
	s := pod.Spec
	if len(pod.UID) != 32 || s.NodeName != node || *s.Priority != 2000001000 ||
		s.RestartPolicy != corev1.RestartPolicyAlways ||
		*s.TerminationGracePeriodSeconds != 30 || s.Containers[0].Ports[0].Protocol != corev1.ProtocolTCP {
		t.Errorf("UID %s, spec %+v", pod.UID, s)
	}
	evicts := corev1.Taint{Key: "any", Effect: corev1.TaintEffectNoExecute}
	if !slices.ContainsFunc(s.Tolerations, func(t corev1.Toleration) bool {
		return t.Operator == corev1.TolerationOpExists && t.Key == "" && t.Effect == evicts.Effect
	}) {
		t.Errorf("taints that evict are not tolerated: %v", s.Tolerations)
	}
	if pod.Status.Phase != "" {
		t.Errorf("a status was taken from the file: %v", pod.Status)
	}
}

// The UID depends on the content and the node, not on the form, and does not change between versions of the agent:
// the expected value is from the first version.
func TestUID(t *testing.T) {
	yaml := podOf(t, text("web", "1"))
	const first = "35a4269f47f7f8d290cf107a7db8904d"
	if yaml.UID != first {
		t.Errorf("the UID is %s, but was %s: every static Pod would be restarted", yaml.UID, first)
	}
	same := podOf(
		t,
		"# a remark\n---\n"+`{"kind": "Pod", "apiVersion": "v1", "spec": {"containers": [{"image": "image:1",
		"name": "main"}]}, "metadata": {"namespace": "kube-system", "name": "web", "labels": {"version": "1"}}}`+"\n---\n",
	)
	if same.UID != yaml.UID {
		t.Errorf("the same content in another form is %s, want %s", same.UID, yaml.UID)
	}
	for what, other := range map[string]types.UID{
		"another content": podOf(t, text("web", "2")).UID, "another name": podOf(t, text("web2", "1")).UID,
	} {
		if other == yaml.UID {
			t.Errorf("%s has the same UID", what)
		}
	}
	elsewhere, _, err := File{Data: []byte(text("web", "1"))}.pod("other")
	if err != nil || elsewhere.UID == yaml.UID {
		t.Errorf("on another node: %v, %v, want another UID", elsewhere.UID, err)
	}
}

// Each mistake gives one sentence with the path of the field.
func TestBadManifests(t *testing.T) {
	pod := func(metadata, spec string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {" + metadata + "}, spec: {" + spec + "}}"
	}
	container := "containers: [{name: main, image: i}]"
	for _, r := range []struct{ name, manifest, want string }{
		{"nothing", "", "it is empty"},
		{"only remarks", "# nothing\n---\n# more\n", "it is empty"},
		{"half a file", text("web", "1")[:60], "it is no manifest: "},
		{"no YAML", "\x00\xff{", "it is no manifest: "},
		{"deep", strings.Repeat("[", 1<<20), "it is no manifest: "},
		{"one line as long as a buffer", strings.Repeat("[", 4096), "it is no manifest: "},
		{"a list", "[1, 2]", "it is no manifest: "},
		{"no kind", "metadata: {name: web}", "apiVersion and kind must be v1 and Pod, but one of them is missing"},
		{"a Service", "{apiVersion: v1, kind: Service, metadata: {name: web}}",
			"apiVersion and kind must be v1 and Pod, not v1 and Service"},
		{"a Deployment", "{apiVersion: apps/v1, kind: Deployment}",
			"apiVersion and kind must be v1 and Pod, not apps/v1 and Deployment"},
		{"two Pods", text("a", "1") + "---" + text("b", "1"),
			"it holds several documents, but a manifest holds one Pod"},
		{"no name", pod("generateName: a-", container), "metadata.name: Required value"},
		{"a name that is a path", pod("name: ../up", container), `metadata.name: Invalid value: "../up-node-1.example"`},
		{"a namespace that is a path", pod("name: a, namespace: a/b", container), `metadata.namespace: Invalid value: "a/b"`},
		{"no containers", pod("name: a", ""), "spec.containers: Required value"},
		{"a container that is a path", pod("name: a", "containers: [{name: ../b, image: i}]"),
			`spec.containers[0].name: Invalid value: "../b"`},
		{"two mistakes", pod("name: a", "containers: [{name: b}, {name: b, image: i}]"), "(and 1 mistakes more)"},
		{"POD-064 a Secret", pod("name: a", container+", volumes: [{name: v, secret: {secretName: s}}]"),
			"spec: Forbidden: static pods may not refer to objects of the API, but it names secrets s"},
		{"POD-064 a ConfigMap",
			pod("name: a", "containers: [{name: m, image: i, envFrom: [{configMapRef: {name: c}}]}]"),
			"but it names configmaps c"},
		{"POD-064 a ServiceAccount", pod("name: a", container+", serviceAccountName: x"), "serviceaccounts x"},
		{"ephemeral containers", pod("name: a", container+", ephemeralContainers: [{name: e, image: i}]"),
			"static pods do not support ephemeral containers"},
	} {
		t.Run(r.name, func(t *testing.T) {
			_, _, err := File{Data: []byte(r.manifest)}.pod(node)
			if message := fmt.Sprint(err); !strings.Contains(message, r.want) || strings.Contains(message, "\n") ||
				len(message) > 1000 {
				t.Errorf("got %.1200q, want one sentence with %q", message, r.want)
			}
		})
	}
}

// A field that this version does not know is reported and left out; the Pod runs.
func TestUnknownField(t *testing.T) {
	plan := decide([]File{{Name: "a", Data: []byte(text("web", "1") + "colour: blue\n")}}, nil, node)
	if len(plan.Start) != 1 || len(plan.Problems) != 1 ||
		!strings.Contains(plan.Problems[0].Message, `unknown field "colour"`) {
		t.Errorf("%+v", plan)
	}
}

// Cutting off a manifest anywhere never panics, and accepted Pods are valid.
func FuzzFile(f *testing.F) {
	whole := text("web", "1")
	for i := range whole {
		f.Add(whole[:i])
	}
	f.Fuzz(func(t *testing.T, data string) {
		pod, _, err := File{Data: []byte(data)}.pod(node)
		if err == nil && (check(pod) != nil || !strings.HasSuffix(pod.Name, "-node-1.example") || len(pod.UID) != 32) {
			t.Errorf("%q became %+v", data, pod)
		}
	})
}
