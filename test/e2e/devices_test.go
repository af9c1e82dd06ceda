package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"keelson.dev/test/deviceplugin"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

const lights = "example.com/lights"

// lit is a Pod with an init container and a container of one light each.
const lit = `
{apiVersion: v1, kind: Pod, metadata: {name: POD}, spec: {terminationGracePeriodSeconds: 1, BOUND
  initContainers: [{name: i, image: keelson.dev/hello:1, command: [sh, -c, 'echo $LIGHTS'],
    resources: {limits: {example.com/lights: 1}}}],
  containers: [{name: c, image: keelson.dev/hello:1, resources: {limits: {example.com/lights: 1}}}]}}
`

// TestDevicePlugin has a device plugin serve a node with real daemons and containers, once through the socket of device
// plugins and once through the folder of all kinds of plugins: a Pod gets its light and keeps it while plugin and agent
// die, and no other Pod gets it before the Pod has ended.
func TestDevicePlugin(t *testing.T) {
	m := processes.New(t, 1)
	for _, watched := range []bool{false, true} {
		d := newDevices(t, m, watched)
		d.given()
		d.outlivesAgentAndPlugin()
		d.freed()
		d.diesAtEachStep()
		d.plugin.Kill()
		d.has(2, 0)
	}
}

type devices struct {
	*scenario.World
	m      *processes.Mesh
	node   string
	plugin *deviceplugin.Plugin
}

func newDevices(t *testing.T, m *processes.Mesh, watched bool) *devices {
	d := &devices{World: scenario.In(t, m), m: m, node: m.Nodes()[0]}
	agent := m.Of(t, mesh.NodeAgent)[0]
	at := slices.IndexFunc(agent.Args, func(arg string) bool { return strings.HasPrefix(arg, "--root-dir=") })
	d.plugin = deviceplugin.New(lights, strings.TrimPrefix(agent.Args[at], "--root-dir="),
		filepath.Join(t.TempDir(), "lights"), "a", "b")
	d.plugin.Set("b", false)
	d.plugin.Watched = watched
	if err := d.plugin.Start(); err != nil {
		t.Fatal(err)
	}
	d.has(2, 1)
	return d
}

// has waits until the node says what it has.
func (d *devices) has(capacity, allocatable int64) {
	d.Helper()
	d.Await("the node's lights", func() scenario.Answer {
		n, err := d.Client.CoreV1().Nodes().Get(d.Context(), d.node, metav1.GetOptions{})
		if err != nil {
			return scenario.Saw(err.Error())
		}
		all, well := n.Status.Capacity[lights], n.Status.Allocatable[lights]
		if all.Value() != capacity || well.Value() != allocatable {
			return scenario.Sawf("%v, of which Pods may use %v", all.String(), well.String())
		}
		return ""
	})
}

func (d *devices) run(pod, bound string) {
	d.Helper()
	d.KubectlWith(strings.NewReplacer("POD", pod, "BOUND", bound).Replace(lit), "apply", "-f", "-")
}

func (d *devices) ready(pod string) {
	d.Helper()
	d.Kubectl("wait", "pod", pod, "--for=condition=Ready", "--timeout=60s")
}

// finds makes sure of all that a container gets with its light.
func (d *devices) finds(pod, light string) {
	d.Helper()
	got := d.Kubectl("exec", pod, "-c", "c", "--", "sh", "-c", strings.ReplaceAll("echo $LIGHTS; ls /lights; "+
		"cat /lights/LIGHT/name; test -c /dev/light && echo device; cp /lights/LIGHT/name /dev/light || echo full; "+
		"touch /lights/LIGHT/x || echo read-only", "LIGHT/", light+"/"))
	if want := strings.Repeat(light+"\n", 3) + "device\nfull\nread-only\n"; got != want {
		d.Errorf("Pod %s finds %q, want %q", pod, got, want)
	}
}

// end ends a container behind the agent's back.
func (d *devices) end(pod, container string) {
	d.Helper()
	runtime := d.m.Runtime(d)
	list, err := runtime.ListContainers(d.Context(), &criv1.ListContainersRequest{Filter: &criv1.ContainerFilter{
		State:         &criv1.ContainerStateValue{State: criv1.ContainerState_CONTAINER_RUNNING},
		LabelSelector: map[string]string{"io.kubernetes.pod.name": pod, "io.kubernetes.container.name": container},
	}})
	if err != nil || len(list.GetContainers()) != 1 {
		d.Fatalf("looking for container %s of Pod %s: %d of them, %v", container, pod, len(list.GetContainers()), err)
	}
	if _, err := runtime.StopContainer(d.Context(),
		&criv1.StopContainerRequest{ContainerId: list.GetContainers()[0].GetId()}); err != nil {
		d.Fatal(err)
	}
}

// health waits for what the Pod's status says of its light.
func (d *devices) health(pod, light string, want corev1.ResourceHealthStatus) {
	d.Helper()
	d.Await("the health of the light of "+pod, func() scenario.Answer {
		p, err := d.Client.CoreV1().Pods(d.Namespace).Get(d.Context(), pod, metav1.GetOptions{})
		if err != nil {
			return scenario.Saw(err.Error())
		}
		got := fmt.Sprint(p.Status.ContainerStatuses[0].AllocatedResourcesStatus)
		told := fmt.Sprint([]corev1.ResourceStatus{{Name: lights, Resources: []corev1.ResourceHealth{
			{ResourceID: corev1.ResourceID(light), Health: want}}}})
		if got != told {
			return scenario.Saw(got)
		}
		return ""
	})
}

// given has one Pod get the healthy light, a second wait for one, and a third that asks for the node itself be refused.
func (d *devices) given() {
	d.Helper()
	d.run("one", "")
	d.ready("one")
	d.finds("one", "a")
	d.health("one", "a", corev1.ResourceHealthStatusHealthy)
	want := []string{"Allocate a", "Allocate a", "PreStartContainer a", "PreStartContainer a"}
	if calls := d.plugin.Calls(); !slices.Equal(calls, want) {
		d.Errorf("the plugin was called for %q, want %q", calls, want)
	}
	d.run("two", "")
	d.Kubectl("wait", "pod", "two", "--for=jsonpath={.status.conditions[?(@.type=='PodScheduled')].reason}="+
		"Unschedulable", "--timeout=60s")
	d.run("three", "nodeName: "+d.node+",")
	d.Kubectl("wait", "pod", "three", "--for=jsonpath={.status.reason}=UnexpectedAdmissionError", "--timeout=60s")
	d.Kubectl("delete", "pod", "three")
}

// outlivesAgentAndPlugin kills both; when they are back, the container starts again with the light that it had.
func (d *devices) outlivesAgentAndPlugin() {
	d.Helper()
	d.plugin.Kill()
	d.has(2, 0)
	d.health("one", "a", corev1.ResourceHealthStatusUnknown)
	d.m.StopNode(d, d.node)
	d.m.StartNode(d, d.node)
	d.has(0, 0)
	d.finds("one", "a")
	if err := d.plugin.Start(); err != nil {
		d.Fatal(err)
	}
	d.has(2, 1)
	d.health("one", "a", corev1.ResourceHealthStatusHealthy)
	d.end("one", "c")
	d.Kubectl("wait", "pod", "one", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "--timeout=60s")
	d.ready("one")
	d.finds("one", "a")
	want := []string{"PreStartContainer a"}
	if calls := d.plugin.Calls(); !slices.Equal(calls, want) {
		d.Errorf("the plugin was called for %q, want %q", calls, want)
	}
}

// freed has the second Pod get a light that is mended, and another one that of the first, when that has ended.
func (d *devices) freed() {
	d.Helper()
	d.plugin.Set("b", true)
	d.ready("two")
	d.finds("two", "b")
	d.run("four", "")
	d.Kubectl("delete", "pod", "one")
	d.ready("four")
	d.finds("four", "a")
	d.plugin.Set("a", false)
	d.health("four", "a", corev1.ResourceHealthStatusUnhealthy)
	d.plugin.Set("a", true)
	d.Kubectl("delete", "pod", "two", "four")
	d.Await("nothing to be written down of the Pods that are gone", func() scenario.Answer {
		return scenario.Left(strings.Join(d.records(), " "))
	})
	d.plugin.Calls()
}

// records are the files in which the agent keeps what Pods were given.
func (d *devices) records() (names []string) {
	d.Helper()
	files, err := os.ReadDir(filepath.Join(d.plugin.AgentRoot, "devices", "pods"))
	if err != nil {
		d.Fatal(err)
	}
	for _, file := range files {
		names = append(names, file.Name())
	}
	return names
}

// diesAtEachStep kills the agent around each step of an allocation and of its end: the Pod gets its light, and frees
// it.
func (d *devices) diesAtEachStep() {
	d.Helper()
	for _, step := range []string{"choose.before", "choose.after", "allocate.before", "allocate.after", "free.before",
		"free.after"} {
		if step == "free.before" {
			// An agent that has just started may be asked for the Pod before the plugin is there again: it frees what
			// it chose, and tries again. The next one finds the Pod as it runs.
			d.m.StartNode(d, d.node)
			d.ready("five")
			d.finds("five", "b")
		}
		d.m.StopNode(d, d.node)
		doomed := d.m.StartArmed(d, mesh.NodeAgent, "nodeagent/device."+step+"=crash")
		switch step {
		case "choose.before":
			d.run("five", "nodeName: "+d.node+",")
		case "free.before":
			d.Kubectl("delete", "pod", "five", "--wait=false")
		}
		awaitEnd(d.World, doomed)
	}
	d.m.StartNode(d, d.node)
	d.Kubectl("wait", "pod", "five", "--for=delete", "--timeout=60s")
	for _, call := range d.plugin.Calls() {
		if !strings.HasSuffix(call, " b") {
			d.Errorf("while the agent died again and again, the plugin was called for %q", call)
		}
	}
	if left := d.records(); len(left) > 0 {
		d.Errorf("on disk is left %v", left)
	}
	d.has(2, 2)
}
