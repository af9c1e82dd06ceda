package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/utils/cpuset"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// sharing is a Pod without a processor of its own, owning one with one, whose init container has it first.
const (
	sharing = `{apiVersion: v1, kind: Pod, metadata: {name: shares}, spec: {terminationGracePeriodSeconds: 1,
  containers: [{name: c, image: keelson.dev/hello:1}]}}`
	owning = `{apiVersion: v1, kind: Pod, metadata: {name: owns}, spec: {terminationGracePeriodSeconds: 1, nodeName: NODE,
  initContainers: [{name: i, image: keelson.dev/hello:1, command: [sh, -c, 'grep Cpus_allowed_list /proc/self/status'],
    resources: {limits: {cpu: "1", memory: 64Mi}}}],
  containers: [{name: c, image: keelson.dev/hello:1, resources: {limits: {cpu: "1", memory: 64Mi}}}]}}`
)

// TestExclusiveCPUs gives a Pod a processor of its own on a node with real daemons and containers, whose first one is
// reserved: others leave it and come back when the Pod has gone, and it stays the Pod's while the agent dies.
func TestExclusiveCPUs(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("a machine with one processor has none to give away")
	}
	m := processes.New(t, 1)
	p := &pinned{World: scenario.In(t, m), m: m, node: m.Nodes()[0]}
	p.restart()
	p.KubectlWith(sharing, "apply", "-f", "-")
	p.ready("shares")
	all := p.allowed("shares")

	p.own()
	p.ready("owns")
	its := p.allowed("owns")
	if its.Size() != 1 || its.Contains(0) {
		t.Errorf("the Pod has %s of %s for itself", its, all)
	}
	if of := p.Kubectl("logs", "owns", "-c", "i"); strings.TrimSpace(strings.TrimPrefix(of, "Cpus_allowed_list:")) !=
		its.String() {
		t.Errorf("its init container had %q, not %s", of, its)
	}
	p.awaitShared(all.Difference(its))
	p.unrationed()
	p.told(its)
	p.staysOneCPU()

	m.StopNode(t, p.node)
	p.restart()
	p.endsAndReturns("owns", its)
	p.awaitShared(all.Difference(its))
	p.Kubectl("delete", "pod", "owns")
	p.awaitShared(all)
	p.diesAtEachStep()
}

type pinned struct {
	*scenario.World
	m    *processes.Mesh
	node string
}

// restart has the agent give processors away.
func (p *pinned) restart() {
	p.Helper()
	p.m.Restart(p, mesh.NodeAgent, "--cpu-manager-policy=static", "--system-reserved=cpu=500m")
}

func (p *pinned) own() {
	p.Helper()
	p.KubectlWith(strings.ReplaceAll(owning, "NODE", p.node), "apply", "-f", "-")
}

func (p *pinned) ready(pod string) {
	p.Helper()
	p.Kubectl("wait", "pod", pod, "--for=condition=Ready", "--timeout=90s")
}

// allowed are the processors on which a container's processes may run, as the kernel says.
func (p *pinned) allowed(pod string) cpuset.CPUSet {
	p.Helper()
	line := p.Kubectl("exec", pod, "-c", "c", "--", "grep", "Cpus_allowed_list", "/proc/1/status")
	_, list, _ := strings.Cut(strings.TrimSpace(line), ":")
	cpus, err := cpuset.Parse(strings.TrimSpace(list))
	if err != nil {
		p.Fatalf("%q: %v", line, err)
	}
	return cpus
}

func (p *pinned) awaitShared(want cpuset.CPUSet) {
	p.Helper()
	p.Await("who shares to be on "+want.String(), func() scenario.Answer {
		if got := p.allowed("shares"); !got.Equals(want) {
			return scenario.Saw(got.String())
		}
		return ""
	})
}

// root is the agent's own folder.
func (p *pinned) root() string {
	p.Helper()
	agent := p.m.Of(p, mesh.NodeAgent)[0]
	at := slices.IndexFunc(agent.Args, func(arg string) bool { return strings.HasPrefix(arg, "--root-dir=") })
	return strings.TrimPrefix(agent.Args[at], "--root-dir=")
}

// pod is the Pod as the API has it.
func (p *pinned) pod(name string) *corev1.Pod {
	p.Helper()
	pod, err := p.Client.CoreV1().Pods(p.Namespace).Get(p.Context(), name, metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	return pod
}

// unrationed makes sure that neither the Pod nor its container has a quota.
func (p *pinned) unrationed() {
	p.Helper()
	pod := p.pod("owns")
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	folder := filepath.Join(p.m.CgroupRoot(), "pod"+string(pod.UID))
	for _, of := range []string{folder, filepath.Join(folder, id)} {
		file, none := filepath.Join("/sys/fs/cgroup/cpu", of, "cpu.cfs_quota_us"), "-1"
		if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
			file, none = filepath.Join("/sys/fs/cgroup", of, "cpu.max"), "max 100000"
		}
		got, err := os.ReadFile(file)
		if err != nil || strings.TrimSpace(string(got)) != none {
			p.Errorf("%s: %q, %v, want %s", file, got, err, none)
		}
	}
}

// told asks the node's service, over its socket, whose the processors are.
func (p *pinned) told(its cpuset.CPUSet) {
	p.Helper()
	socket := filepath.Join(p.TempDir(), "s")
	if err := os.Symlink(filepath.Join(p.root(), "pod-resources", "kubelet.sock"), socket); err != nil {
		p.Fatal(err)
	}
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		p.Fatal(err)
	}
	defer conn.Close()
	client := podresources.NewPodResourcesListerClient(conn)
	list, err := client.List(p.Context(), &podresources.ListPodResourcesRequest{})
	if err != nil {
		p.Fatal(err)
	}
	of := map[string]string{}
	for _, pod := range list.GetPodResources() {
		if pod.GetNamespace() == p.Namespace {
			of[pod.GetName()] = fmt.Sprint(pod.GetContainers()[0].GetCpuIds())
		}
	}
	if want := "[" + strconv.Itoa(its.List()[0]) + "]"; len(of) != 2 || of["owns"] != want || of["shares"] != "[]" {
		p.Errorf("Pods are told to have %v, want %s for one", of, want)
	}
	may, err := client.GetAllocatableResources(p.Context(), &podresources.AllocatableResourcesRequest{})
	if err != nil || len(may.GetCpuIds()) != runtime.NumCPU()-1 || slices.Contains(may.GetCpuIds(), 0) {
		p.Errorf("%v may be given out, %v", may.GetCpuIds(), err)
	}
}

// staysOneCPU makes sure that the Pod cannot be resized to another number.
func (p *pinned) staysOneCPU() {
	p.Helper()
	p.Kubectl("patch", "pod", "owns", "--subresource=resize", "--patch",
		`{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"500m"},"requests":{"cpu":"500m"}}}]}}`)
	p.Await("the resize to be infeasible", func() scenario.Answer {
		for _, c := range p.pod("owns").Status.Conditions {
			if c.Type == corev1.PodResizePending {
				if c.Reason == corev1.PodReasonInfeasible && c.Message ==
					`Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"` {
					return ""
				}
				return scenario.Saw(c.Reason + ": " + c.Message)
			}
		}
		return "nobody says so"
	})
	p.Kubectl("patch", "pod", "owns", "--subresource=resize", "--patch",
		`{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}}]}}`)
}

// endsAndReturns ends the container behind the agent's back: the next instance has the same processors.
func (p *pinned) endsAndReturns(pod string, its cpuset.CPUSet) {
	p.Helper()
	d := &devices{World: p.World, m: p.m, node: p.node}
	d.end(pod, "c")
	p.Kubectl("wait", "pod", pod, "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "--timeout=90s")
	p.ready(pod)
	if got := p.allowed(pod); !got.Equals(its) {
		p.Errorf("after restarts the Pod has %s, not %s", got, its)
	}
}

// diesAtEachStep kills the agent around each write of who has what: the Pod gets its processor, and frees it.
func (p *pinned) diesAtEachStep() {
	p.Helper()
	for _, step := range []string{"choose.before", "choose.after", "free.before", "free.after"} {
		if step == "free.before" {
			p.m.StartNode(p, p.node)
			p.ready("owns")
			if its := p.allowed("owns"); its.Size() != 1 || its.Contains(0) {
				p.Errorf("the Pod has %s for itself", its)
			}
		}
		p.m.StopNode(p, p.node)
		doomed := p.m.StartArmed(p, mesh.NodeAgent, "nodeagent/cpu."+step+"=crash")
		switch step {
		case "choose.before":
			p.own()
		case "free.before":
			p.Kubectl("delete", "pod", "owns", "--wait=false")
		}
		awaitEnd(p.World, doomed)
	}
	p.m.StartNode(p, p.node)
	p.Kubectl("wait", "pod", "owns", "--for=delete", "--timeout=90s")
	p.Await("nobody to have a processor", func() scenario.Answer {
		state, err := os.ReadFile(filepath.Join(p.root(), "cpu_manager_state"))
		if err != nil || strings.Contains(string(state), "entries") {
			return scenario.Sawf("%s, %v", state, err)
		}
		return ""
	})
}
