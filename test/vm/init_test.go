package vm

import (
	"strings"
	"testing"
	"time"
)

// settleTimeout bounds each wait for a state: the longest seen was four minutes, beside four times the load that the
// processors could take.
const settleTimeout = 10 * time.Minute

// deploy makes a Deployment of two Pods with a limit. kubectl would check it against the OpenAPI document, and gives up
// where the server needs half a minute for that.
const deploy = `kubectl create --validate=false -f - <<END
{apiVersion: apps/v1, kind: Deployment, metadata: {name: twice}, spec: {replicas: 2,
  selector: {matchLabels: {app: twice}}, template: {metadata: {labels: {app: twice}}, spec: {
  containers: [{name: c, image: "keelson.dev/hello:1", resources: {limits: {memory: 64Mi}}}]}}}}
END`

// What the mesh has then, as the API has it and as the kernel does: one Pod of cluster DNS, two of the Deployment.
const (
	// uids prints which Pods there are.
	uids = `kubectl get pods -A -o jsonpath='{.items[*].metadata.uid}'`
	// containers prints of each container how often it was started again and whether it is ready.
	containers = `kubectl get pods -A -o jsonpath='{range .items[*].status.containerStatuses[*]}` +
		`{.restartCount} {.ready}, {end}'`
	// processes prints those of the containers.
	processes = "ps -C coredns,testserver -o pid=,comm="
	// limits prints what the kernel knows of the limit of the Deployment's containers, which have no swap.
	limits = `for pid in $(pgrep -x testserver); do
cd /sys/fs/cgroup$(cut -d: -f3 /proc/$pid/cgroup); cat memory.max memory.oom.group memory.swap.max; done`
	// daemons prints the processes of the units.
	daemons = "systemctl show --property=Id,MainPID 'keelson-[!g]*.service'"
)

// left prints what a mesh has on a machine besides its data.
const left = `ls /etc/systemd/system | grep keelson- | grep -v guest
ls -d /etc/systemd/system/multi-user.target.wants/keelson-[!g]* /sys/fs/cgroup/keelson* 2>/dev/null
systemctl list-units --all --no-legend --plain 'keelson_*' 'cri-containerd-*' 'keelson-[!g]*'
ps -eo comm= | grep -E '^(keelson-|containerd|coredns|testserver|pause)'
ip -o link | grep -E 'keel|veth'; ip route | grep -E 'keel|unreachable'
grep /var/lib/keelson /proc/mounts; ls /run/containerd/s`

// TestInit makes a machine a mesh that systemd runs, which then comes through all that machines go through.
func TestInit(t *testing.T) {
	long(t)
	m := New(t, Config{Name: "mesh", MemoryMiB: 3072, Mesh: true})
	t.Log(m.Shell(t, "keel init --timeout 10m"))
	m.kubectl(t, deploy)
	m.await(t, containers, "0 true, 0 true, 0 true,")
	if got := m.Shell(t, limits); got != "67108864\n1\n0\n67108864\n1\n0" {
		t.Errorf("the limits of the containers are, in bytes, for all of a container at once, and of swap:\n%s", got)
	}
	for _, step := range []struct {
		name string
		test func(t *testing.T, m *Machine)
	}{
		{"Again", initAgain}, {"UnitsRestart", unitsRestart}, {"Reboot", reboot}, {"PowerCut", powerCut},
		{"Swap", swap}, {"Reset", reset},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, m) }) {
			return
		}
	}
}

// kubectl runs a line of shell with the operator's kubeconfig.
func (m *Machine) kubectl(t testing.TB, line string) string {
	t.Helper()
	return m.Shell(t, withKubeconfig(line))
}

func withKubeconfig(line string) string {
	return "export KUBECONFIG=/var/lib/keelson/kubeconfig/admin.kubeconfig\n" + line
}

// await waits until a line of shell with the operator's kubeconfig prints the wanted text.
func (m *Machine) await(t testing.TB, line, want string) {
	t.Helper()
	m.Await(t, withKubeconfig(line), want, settleTimeout)
}

// initAgain changes nothing.
func initAgain(t *testing.T, m *Machine) {
	before := m.Shell(t, daemons)
	if out := m.Shell(t, "keel init"); strings.Contains(out, "starting") || strings.Contains(out, "writing") {
		t.Errorf("it found something to do:\n%s", out)
	}
	if after := m.Shell(t, daemons); after != before {
		t.Errorf("the processes were\n%s\nand are\n%s", before, after)
	}
}

// unitsRestart looks at containers when their runtime and each of the daemons restart.
func unitsRestart(t *testing.T, m *Machine) {
	before := m.Shell(t, processes)
	if strings.Count(before, "\n") != 2 {
		t.Errorf("the containers' processes are\n%s\nwant 3", before)
	}
	m.Shell(t, "systemctl restart 'keelson-[!g]*.service'")
	m.Shell(t, "keel init --timeout 10m") // returns when all of them are ready
	// The new runtime has taken the containers of the old one over, and starts a process in one.
	m.await(t, "kubectl exec deployment/twice -- /bin/testserver echo here", "here")
	m.await(t, containers, "0 true, 0 true, 0 true,")
	if after := m.Shell(t, processes); after != before {
		t.Errorf("the containers' processes were\n%s\nand are\n%s", before, after)
	}
}

// reboot touches nothing after the start.
func reboot(t *testing.T, m *Machine) {
	before := m.kubectl(t, uids)
	m.Reboot(t)
	returns(t, m, before, "1 true, 1 true, 1 true,")
}

// powerCut cuts the power right after the API has acknowledged something, and touches nothing after the start.
func powerCut(t *testing.T, m *Machine) {
	before := m.kubectl(t, uids)
	m.kubectl(t, "kubectl create configmap acknowledged")
	m.Cut(t)
	m.PowerOn(t)
	returns(t, m, before, "2 true, 2 true, 2 true,")
	m.kubectl(t, "kubectl get configmap acknowledged")
}

// returns waits until the Pods from before the start run again, each of them once.
func returns(t *testing.T, m *Machine, pods, want string) {
	t.Helper()
	m.await(t, containers, want)
	if after := m.kubectl(t, uids); after != pods {
		t.Errorf("the Pods were\n%s\nand are\n%s", pods, after)
	}
	if after := m.Shell(t, processes); strings.Count(after, "\n") != 2 {
		t.Errorf("the containers' processes are\n%s\nwant 3", after)
	}
	m.await(t, "systemctl is-active 'keelson-[!g]*.service' | sort | uniq -c | tr -s ' '", "6 active")
}

// swapOn gives the machine swap and lets Pods have some, until the next boot; swapOff takes both back.
const (
	swapOn = `dd if=/dev/zero of=/swap bs=1M count=64; chmod 600 /swap; mkswap /swap; swapon /swap
dir=/run/systemd/system/keelson-nodeagent.service.d; mkdir -p $dir
printf '[Service]\nEnvironment=KEELSON_MEMORY_SWAP_BEHAVIOR=LimitedSwap\n' >$dir/swap.conf
systemctl daemon-reload; systemctl restart keelson-nodeagent`
	swapOff = `rm -r /run/systemd/system/keelson-nodeagent.service.d
systemctl daemon-reload; systemctl restart keelson-nodeagent; swapoff /swap; rm /swap`
)

// swapper makes a Pod whose container requests a part of the machine's memory.
const swapper = `kubectl create --validate=false -f - <<END
{apiVersion: v1, kind: Pod, metadata: {name: swapper}, spec: {
  containers: [{name: c, image: "keelson.dev/hello:1", resources: {requests: {memory: 512Mi}}}]}}
END`

// swapOfSwapper prints the kernel's limit of its swap, and what that must be: the same part of the swap in whole pages.
const swapOfSwapper = `id=$(kubectl get pod swapper -o jsonpath='{.status.containerStatuses[0].containerID}')
cat "$(find /sys/fs/cgroup -type d -name "*${id#containerd://}*" | head -1)/memory.swap.max"
awk '/^MemTotal:/ {m = $2} /^SwapTotal:/ {s = $2} END {printf "%d\n", int(524288 * s / m / 4) * 4096}' /proc/meminfo`

// swap lets a container swap as much as its request deserves.
func swap(t *testing.T, m *Machine) {
	m.Shell(t, swapOn)
	m.kubectl(t, swapper)
	m.await(t, "kubectl get pod swapper -o jsonpath='{.status.phase}'", "Running")
	got, want, _ := strings.Cut(m.kubectl(t, swapOfSwapper), "\n")
	if got != want || got == "0" {
		t.Errorf("its container may swap %s bytes, want %s", got, want)
	}
	m.kubectl(t, "kubectl delete pod swapper")
	m.Shell(t, swapOff)
}

// reset leaves the data and nothing else.
func reset(t *testing.T, m *Machine) {
	if got := m.result(t.Context(), left); !strings.Contains(got, "keelson-nodeagent.service") {
		t.Fatalf("what the mesh has is not seen:\n%s", got)
	}
	t.Log(m.Shell(t, "keel reset --yes"))
	if got := m.result(t.Context(), left); got != "" {
		t.Errorf("it left:\n%s", got)
	}
	m.Shell(t, "test -s /var/lib/keelson/pki/ca.key && test -d /var/lib/keelson/apiserver")
}
