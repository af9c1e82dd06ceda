package scenario

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// busy is a Pod that takes all the CPU that it may have, quiet one that waits, done one that ends, waiting one that
// never gets a node.
const busy = `apiVersion: v1
kind: Pod
metadata: {name: busy, labels: {load: high}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: burn
    image: ` + Server + `
    command: [sh, -c, "while true; do true; done"]
    resources: {limits: {cpu: 200m, memory: 64Mi}}
  - {name: idle, image: "` + Server + `", args: ["-http="], resources: {limits: {cpu: 100m, memory: 64Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: quiet, labels: {load: low}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: idle, image: "` + Server + `", args: ["-http="], volumeMounts: [{name: scratch, mountPath: /scratch}]}
  volumes: [{name: scratch, emptyDir: {}}]
---
apiVersion: v1
kind: Pod
metadata: {name: done, labels: {load: none}}
spec:
  restartPolicy: Never
  containers: [{name: main, image: "` + Server + `", command: [sh, -c, "exit 0"]}]
---
apiVersion: v1
kind: Pod
metadata: {name: waiting, labels: {load: none}}
spec:
  nodeSelector: {no.node/has: this}
  containers: [{name: main, image: "` + Server + `"}]
`

// PodMetrics asks a mesh to which nothing was added what its Pods and nodes use. (DEP-212)
func PodMetrics(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	w.KubectlWith(busy, "apply", "-f", "-")
	w.Kubectl("wait", "--for=condition=Ready", "pod/busy", "pod/quiet", "--timeout=60s")
	w.Kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/done", "--timeout=60s")
	burning := ""
	w.Await("the busy container to use what it may have", func() Answer {
		burning = w.Kubectl("top", "pods", "--containers", "--no-headers")
		row := regexp.MustCompile(`(?m)^busy +burn +(\d+)m +(\d+)Mi *$`).FindStringSubmatch(burning)
		if row == nil {
			return Saw(burning)
		}
		// The kernel gives a quota by slices of 100 ms, and the first reading is one of two seconds.
		if milli, err := strconv.Atoi(row[1]); err != nil || milli < 150 || milli > 250 {
			return Saw(burning)
		}
		// Each container is told of after two readings, and they do not begin at once.
		for _, pattern := range []string{`(?m)^busy +idle +\d{1,2}m +[1-9]\d*Mi *$`,
			`(?m)^quiet +idle +\d{1,2}m +[1-9]\d*Mi *$`} {
			if !regexp.MustCompile(pattern).MatchString(burning) {
				return Sawf("no %s in\n%s", pattern, burning)
			}
		}
		return ""
	})
	if rows := strings.Count(burning, "\n"); rows != 3 {
		t.Errorf("kubectl top pods --containers has %d rows, want those of the 3 containers that run:\n%s", rows,
			burning)
	}
	for _, row := range []struct{ command, want string }{
		{"top pods --sort-by=cpu", `^NAME +CPU\(cores\) +MEMORY\(bytes\) *\nbusy .*\nquiet .*\n$`},
		{"top pods --sort-by=memory --sum", `^NAME .*\n(busy|quiet) .*\n(busy|quiet) .*\n.*____.*\n +\d+m +\d+Mi *\n$`},
		{"top pods -l load=low --no-headers", `^quiet +\d+m +\d+Mi *\n$`},
		{"top pod busy --no-headers", `^busy +[1-9]\d*m +\d+Mi *\n$`},
		{"top pods --field-selector=metadata.name=quiet --no-headers", `^quiet .*\n$`},
		{"top pods -A", `(?m)^` + w.Namespace + ` +busy +\d+m`},
		{"top nodes",
			`^NAME +CPU\(cores\) +CPU\(%\) +MEMORY\(bytes\) +MEMORY\(%\) *\n(\S+ +[1-9]\d*m +\d+% +[1-9]\d*Mi +\d+% *\n)+$`},
		{"top node " + m.Nodes()[0] + " --no-headers", `^` + m.Nodes()[0] + ` +[1-9]\d*m .*\n$`},
		// A quantity is written with the largest suffix that leaves it whole: now and then that is a larger one.
		{"get podmetrics busy", `^NAME +CPU +MEMORY +WINDOW *\nbusy +\d+[num]? +\d+[KM]i +[\d.ms]+ *\n$`},
		{"api-resources --api-group=metrics.k8s.io --no-headers", `^nodes +metrics.k8s.io/v1 +false +NodeMetrics *\n` +
			`pods +metrics.k8s.io/v1 +true +PodMetrics *\n$`},
		{"explain podmetrics.window", `(?s)KIND: +PodMetrics.*FIELD: window`},
	} {
		if out := w.Kubectl(strings.Fields(row.command)...); !regexp.MustCompile(row.want).MatchString(out) {
			t.Errorf("kubectl %s prints\n%swant %s", row.command, out, row.want)
		}
	}
	expectStatsSummary(w)
	expectMetricsRefused(w, t)
	expectNodeMetrics(w, t, m.Nodes()[0])
}

// expectMetricsRefused asks for what there is nothing to tell about.
func expectMetricsRefused(w *World, t *testing.T) {
	t.Helper()
	for command, want := range map[string]string{
		"top pod nobody":          `Error from server (NotFound): pods "nobody" not found`,
		"top pod done":            `podmetrics.metrics.k8s.io "` + w.Namespace + `/done" not found`,
		"top pod waiting":         `podmetrics.metrics.k8s.io "` + w.Namespace + `/waiting" not found`,
		"top node nowhere":        `Error from server (NotFound): nodes "nowhere" not found`,
		"top pods --sort-by=disk": "--sort-by accepts only cpu or memory",
		"delete podmetrics busy":  "the server does not allow this method on the requested resource",
		"get --raw /apis/metrics.k8s.io/v1/pods?watch=1": "watch is not supported on resources of kind",
		"top pods -l load=unknown":                       "No resources found in " + w.Namespace + " namespace.",
	} {
		if r := w.TryKubectl("", strings.Fields(command)...); !strings.Contains(r.Stderr, want) || r.Stdout != "" {
			t.Errorf("kubectl %s: %d %q, %q, want %s", command, r.Code, r.Stderr, r.Stdout, want)
		}
	}
}

// expectNodeMetrics wants the node to be told apart from what it has: a share of its capacity.
func expectNodeMetrics(w *World, t *testing.T, name string) {
	t.Helper()
	var milli, memory int64
	row := w.Kubectl("top", "node", name, "--no-headers")
	if _, err := fmt.Sscanf(row, name+" %dm %d%% %dMi", &milli, new(int), &memory); err != nil {
		t.Fatalf("reading %q: %v", row, err)
	}
	node := getNode(w, name)
	if capacity := node.Status.Capacity; milli > capacity.Cpu().MilliValue()*11/10 ||
		memory<<20 > capacity.Memory().Value() || milli < 100 {
		t.Errorf("kubectl top node prints %q of a node that has %v, with a Pod that uses 200m", row, capacity)
	}
}
