package simulate

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

const (
	nodeFile = `{apiVersion: v1, kind: Node, metadata: {name: big},
  status: {capacity: {cpu: "32", memory: 64Gi, pods: "110"}}}`
	podFile = `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c,
  resources: {requests: {cpu: "5"}}}]}}`
)

// files writes files into a folder and makes it the working directory.
func files(t *testing.T, content map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range content {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// said runs the command and returns what it says and its status.
func said(t *testing.T, in string, args ...string) (int, string, string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code := Execute(t.Context(), args, strings.NewReader(in), &out, &errOut)
	return code, out.String(), errOut.String()
}

// Each mistake gets one line with the path of what is wrong and what is allowed, and the status of a mistake.
func TestMistakes(t *testing.T) {
	files(t, map[string]string{
		"snap": `{"kind":"List","apiVersion":"v1","items":[{"kind":"Node","apiVersion":"v1","metadata":{"name":"a",` +
			`"labels":{"topology.kubernetes.io/zone":"x"}}}]}`,
		"secret":     `{"kind":"List","apiVersion":"v1","items":[{"kind":"Secret","apiVersion":"v1"}]}`,
		"thing":      `{"kind":"List","apiVersion":"v1","items":[{"kind":"Thing","apiVersion":"v7"}]}`,
		"pod":        podFile,
		"node.yaml":  nodeFile,
		"a.yaml":     strings.Replace(nodeFile, "big", "a", 1),
		"none/x.txt": "",
		"typo":       "---\n# a comment\n---\n" + strings.Replace(podFile, "containers", "container", 1),
		"negative":   deployment("web", -1, "1"),
		"two":        podFile + "\n---\n" + podFile,
		"most": deployment(
			"web",
			1<<31-1,
			"1",
		),
		"together": deployment("one", 100_000, "1") + deployment("two", 1, "1"),
		"job": `{apiVersion: batch/v1, kind: CronJob, metadata: {name: j}, spec: {jobTemplate: {spec: {
  parallelism: 2147483647, completions: 2147483647, template: {spec: {containers: [{name: c}]}}}}}}`,
		"daemons": `{"kind":"List","apiVersion":"v1","items":[{"kind":"DaemonSet","apiVersion":"apps/v1","metadata":` +
			`{"name":"a"}},{"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{"name":"b"}}]}`,
		"runtime":  strings.Replace(podFile, "containers:", "runtimeClassName: nosuch, containers:", 1),
		"overhead": strings.Replace(podFile, "containers:", `overhead: {cpu: "1"}, containers:`, 1),
		"class":    strings.Replace(podFile, "containers:", "priorityClassName: nosuch, containers:", 1),
		"empty":    `{apiVersion: v1, kind: Service, metadata: {name: s}}`,
		"no-pods":  strings.Replace(nodeFile, `, pods: "110"`, "", 1),
		"no-name": strings.Replace(nodeFile, "big", `""`,
			1),
		"rc": `{apiVersion: v1, kind: ReplicationController, metadata: {name: rc}, spec: {}}`,
	})
	for line, want := range map[string]string{
		"":                         "nothing is asked: at least one of --filename",
		"-f pod extra":             `unexpected argument "extra"`,
		"--nosuch":                 "unknown flag: --nosuch",
		"-f pod -o yaml":           `--output: "yaml" must be json`,
		"--snapshot snap --save x": "--save: a snapshot is saved of a mesh",
		"-f nosuch":                "--filename: stat nosuch: no such file",
		"-f none": "--filename: folder none has no file that ends in .yaml, " +
			".yml or .json",
		"--snapshot snap -f typo":  `--filename: typo[2]: strict decoding error: unknown field "spec.container"`,
		"--snapshot snap -f empty": "--filename: there is none of Pod, Deployment",
		"--snapshot snap -f two": "--filename: two[2]: Pod p: it stands twice, also in " +
			"--filename: two[1]",
		"--snapshot snap -f rc": "--filename: rc[1]: ReplicationController rc: " +
			"spec.template: it is missing",
		"--snapshot snap -f class": `class[1]: Pod p: priorityClassName: there is no PriorityClass "nosuch"`,
		"--snapshot snap -f runtime": "runtime[1]: Pod p: runtimeClassName: pod rejected: " +
			`RuntimeClass "nosuch" not found`,
		"--snapshot snap -f overhead": "overhead[1]: Pod p: runtimeClassName: pod rejected: Pod Overhead set without " +
			"corresponding RuntimeClass defined Overhead",
		"--snapshot nosuch -f pod": "--snapshot: open nosuch: no such file",
		"--snapshot pod -f pod":    "--snapshot: pod is no List of objects in JSON",
		"--snapshot secret -f pod": "--snapshot: items[0]: a Secret is no part of a snapshot, " +
			"only Node, Pod",
		"--snapshot thing -f pod":                     `--snapshot: thing: items[0]: no kind "Thing" is registered`,
		"--kubeconfig nosuch -f pod":                  "--kubeconfig: stat nosuch: no such file",
		"--snapshot snap --without-node b":            `--without-node: there is no node "b"`,
		"--snapshot snap --without-zone y":            `--without-zone: no node is in zone "y", there are x`,
		"--snapshot snap --add-node nosuch":           "--add-node: open nosuch: no such file",
		"--snapshot snap --add-node node.yaml=0":      `--add-node: "0" is no number of nodes, it must be between 1`,
		"--snapshot snap --add-node node.yaml=100001": `--add-node: "100001" is no number of nodes`,
		"--snapshot snap --add-node pod":              "--add-node: pod: it is a Pod p, it must be a Node",
		"--snapshot snap --add-node two":              "--add-node: two has 2 objects, it must have one Node",
		"--snapshot snap --add-node no-pods":          "status.allocatable.pods: it is missing",
		"--snapshot snap --add-node no-name":          "metadata.name: it is missing",
		"--snapshot snap --add-node a.yaml":           "--add-node: a.yaml: metadata.name: there is a node a already",
		"--snapshot snap -f negative": "negative[1]: Deployment web: spec.replicas: -1, it must be between 0 " +
			"and 100000",
		"--snapshot snap -f most": "most[1]: Deployment web: spec.replicas: 2147483647, it must be between 0 and " +
			"100000: no more Pods are simulated at once",
		"--snapshot snap -f job": "job[1]: CronJob j: spec.jobTemplate.spec.parallelism: 2147483647, it must be " +
			"between 0 and 100000",
		"--snapshot snap -f together": "together[2]: Deployment two: with it there are 100001 Pods, at most 100000 " +
			"are simulated at once",
		"--snapshot daemons --add-node node.yaml=60000": "--add-node: node.yaml: DaemonSet /b: with it there are " +
			"120000 Pods, at most 100000 are simulated at once",
		"--snapshot snap -f pod --scheduler-config pod": "--scheduler-config: pod: ",
	} {
		code, _, text := said(t, "", strings.Fields(line)...)
		if code != exitUsage || !strings.Contains(text, want) || strings.Count(text, "\n") != 1 {
			t.Errorf("%q: status %d, %q; want %d with %q on one line", line, code, text, exitUsage, want)
		}
	}
}

// A snapshot answers as the mesh does that it is of, and keeps nothing that decisions do not depend on.
func TestSnapshot(t *testing.T) {
	files(t, map[string]string{"node.yaml": nodeFile, "m/pod.yaml": podFile, "m/other.json": podFile[:0]})
	secret := running("r", "a", "3", "ReplicaSet/r")
	secret.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "hidden"}}
	secret.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	secret.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "x"}
	ended := running("ended", "a", "1", "")
	ended.Status.Phase = corev1.PodFailed
	tainted := node("b", "x", "4")
	tainted.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{
		"storageclass.kubernetes.io/is-default-class": "true", "note": "hidden"}}}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "kube-system",
		Annotations: map[string]string{"note": "hidden"}}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c",
		Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "hidden"}}}}
	client := fake.NewClientset(node("a", "x", "4"), tainted, secret, ended, class, set,
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 7})
	objects, err := list(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if err := write("snap.json", objects); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("snap.json")
	if err != nil || strings.Contains(string(data), "hidden") || strings.Contains(string(data), "ended") {
		t.Errorf("%v, the snapshot is %s", err, data)
	}
	code, out, text := said(t, "", "--snapshot", "snap.json", "-f", "m", "--without-node", "a", "--add-node",
		"node.yaml", "-o", "json")
	var report Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
		t.Fatalf("status %d, %q, %v", code, text, err)
	}
	want := []string{"lost node ReplicaSet r 1/1 b", "new node DaemonSet d 1/1 big", "manifest Pod p 1/1 big"}
	if got := lines(report); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("says %q, want %q", got, want)
	}
	if m, err := newMesh(objects); err != nil || *m.defaultClass() != "s" || len(m.priorities) != 1 {
		t.Errorf("the mesh is %+v, %v", m, err)
	}
}

// Pods of a RuntimeClass take its overhead, go where it says and tolerate what it does, as soon as they are made: those
// of manifests, of the mesh's DaemonSets on new nodes, from a snapshot too. Those that are there are what they are.
func TestRuntimeClass(t *testing.T) {
	files(t, map[string]string{"node.yaml": nodeFile,
		"pods": strings.Replace(deployment("web", 5, "1"), "spec: {containers",
			"spec: {runtimeClassName: safe, containers", 1)})
	plain, safe := node("plain", "x", "64"), node("safe", "x", "5")
	safe.Labels["sandbox"] = "yes"
	safe.Spec.Taints = []corev1.Taint{{Key: "sandbox", Effect: corev1.TaintEffectNoSchedule}}
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "safe"}, Handler: "safe",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"sandbox": "yes"},
			Tolerations: []corev1.Toleration{{Key: "sandbox", Operator: corev1.TolerationOpExists}}}}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "default"}}
	set.Spec.Template.Spec.RuntimeClassName = new("safe")
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	waiting := running("old", "", "1", "")
	waiting.Spec.RuntimeClassName, waiting.Spec.Overhead = new("gone"), corev1.ResourceList{}
	objects, err := list(t.Context(), fake.NewClientset(plain, safe, class, set, waiting))
	if err != nil {
		t.Fatal(err)
	}
	if err := write("snap.json", objects); err != nil {
		t.Fatal(err)
	}
	code, out, text := said(t, "", "--snapshot", "snap.json", "-f", "pods", "--add-node", "node.yaml", "-o", "json")
	var report Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
		t.Fatalf("status %d, %q, %v", code, text, err)
	}
	got := strings.Join(lines(report), "\n")
	for _, want := range []string{"new node DaemonSet d 0/1 -", "waiting Pod old 1/1 plain",
		"manifest Deployment web 3/5 safe (3)"} {
		if !strings.Contains(got, want) {
			t.Errorf("says\n%s\nwant %q", got, want)
		}
	}
}

// The table lists the reasons once, and the least change that would help.
func TestTable(t *testing.T) {
	files(t, map[string]string{"snap": `{"kind":"List","apiVersion":"v1","items":[
		{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"},"status":{"allocatable":
			{"cpu":"4","memory":"1Gi","pods":"110"}}}]}`})
	_, out, text := said(t, deployment("web", 5, "1500m")+"---\n"+podFile, "--snapshot", "snap", "-f", "-")
	want := `WORKLOAD                 FROM       PODS   FIT   NODES
Deployment default/web   manifest   5      2     a (2)
Pod default/p            manifest   1      0     -

Deployment default/web, 3 of 5 Pods: 0/1 nodes are available: 1 Insufficient cpu. ` +
		`preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.
  would fit: 500m less cpu

Pod default/p, 1 of 1 Pods: 0/1 nodes are available: 1 Insufficient cpu. ` +
		`preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.
  would fit: 4 less cpu

2 of 6 Pods get a node, of 1 nodes.
`
	if out != want {
		t.Errorf("says %s\n%s\nwant\n%s", text, out, want)
	}
}
