package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"keelson.dev/kit/nettest"
	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh/machine"
	"keelson.dev/test/scenario"
)

// joinLine is what keel init prints for the machines that join.
var joinLine = regexp.MustCompile(`keel (join \S+ --token \S+ --discovery-token-ca-cert-hash \S+)`)

// apart makes a Deployment with a Pod on each of two nodes, and its Service.
const apart = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: apart}, spec: {replicas: 2,
  selector: {matchLabels: {app: apart}}, template: {metadata: {labels: {app: apart}}, spec: {
  terminationGracePeriodSeconds: 1,
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
    {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: apart}}}]}},
  containers: [{name: c, image: "` + scenario.HelloV1 + `"}]}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: apart},
  spec: {selector: {app: apart}, ports: [{port: 80, targetPort: 8080}]}}
`

// TestJoin makes one machine a mesh by keel init and another one its node by keel join, both without systemd: Pods on
// both reach each other by name, what dies is started again, and keel reset leaves the machines as they were.
func TestJoin(t *testing.T) {
	j := &joined{T: t, first: machine.New(t, "first"), second: machine.New(t, "second")}
	machine.Connect(t, j.first, netip.MustParsePrefix("192.168.77.1/24"), j.second,
		netip.MustParsePrefix("192.168.77.2/24"))
	before := map[*machine.Machine][]string{}
	for _, m := range []*machine.Machine{j.first, j.second} {
		before[m] = m.Standing(t, nettest.Standing)
	}
	for _, step := range []struct {
		name string
		test func(*joined)
	}{
		{"Init", (*joined).init}, {"WrongHash", (*joined).wrongHash}, {"Join", (*joined).join},
		{"AgainChangesNothing", (*joined).again}, {"Names", (*joined).names}, {"DaemonDies", (*joined).daemonDies},
		{"SupervisorDies", (*joined).supervisorDies}, {"Reset", (*joined).reset},
	} {
		if !t.Run(step.name, func(t *testing.T) { j.T = t; step.test(j) }) {
			return
		}
	}
	for m, want := range before {
		if left := without(m.Standing(t, nettest.Standing), want); len(left) > 0 {
			t.Errorf("left in the kernel of %s:\n%s", m.Name, strings.Join(left, "\n"))
		}
	}
}

// joined are the two machines.
type joined struct {
	*testing.T
	first, second *machine.Machine
	// line is what joins further machines.
	line []string
}

func (j *joined) init() {
	said := j.keel(j.first, "init", "--bind-address=192.168.77.1")
	found := joinLine.FindStringSubmatch(said)
	if found == nil {
		j.Fatalf("keel init does not say how machines join:\n%s", said)
	}
	j.line = strings.Fields(found[1])
	if supervise := "supervise --data-dir=" + j.first.DataDir; !strings.Contains(said, supervise) {
		j.Errorf("keel init does not say what starts the mesh with the machine:\n%s", said)
	}
}

func (j *joined) wrongHash() {
	wrong := slices.Clone(j.line)
	last := len(wrong) - 1
	wrong[last] = wrong[last][:len(wrong[last])-4] + "ffff"
	out, err := j.second.Keel(j.Context(), wrong...)
	if err == nil || !strings.Contains(out, "the mesh's authority is sha256:") {
		j.Errorf("got %v:\n%s", err, out)
	}
}

func (j *joined) join() {
	j.keel(j.second, j.line...)
	j.await("Ready Ready ", "get", "nodes", "first", "second", "-o",
		`jsonpath={range .items[*]}{.status.conditions[?(@.status=="True")].type} {end}`)
	manifest := filepath.Join(j.TempDir(), "apart.yaml")
	if err := os.WriteFile(manifest, []byte(apart), 0o600); err != nil {
		j.Fatal(err)
	}
	j.kubectl("apply", "-f", manifest)
	j.kubectl("rollout", "status", "deployment", "apart", "--timeout=90s")
	if nodes := slices.Sorted(maps.Keys(j.pods())); !slices.Equal(nodes, []string{"first", "second"}) {
		j.Errorf("the Pods are on %v", nodes)
	}
}

// again updates machines that are already up to date.
func (j *joined) again() {
	for m, command := range map[*machine.Machine]string{j.first: "init", j.second: "join"} {
		before := j.processes(m)
		if out := j.keel(m, command); strings.Contains(out, "starting") || strings.Contains(out, "writing") {
			j.Errorf("keel %s found something to do:\n%s", command, out)
		}
		if after := j.processes(m); !maps.Equal(before, after) {
			j.Errorf("the processes were %v and are %v", before, after)
		}
	}
}

// names has a Pod of each machine find those of both by the Service's name. The certificate for sessions with Pods of
// the second machine is approved first.
func (j *joined) names() {
	j.await("1", "get", "csr", "--field-selector=spec.signerName=kubernetes.io/kubelet-serving", "-o",
		"jsonpath={range .items[*]}1{end}")
	j.kubectl("certificate", "approve", strings.TrimSpace(j.kubectl("get", "csr",
		"--field-selector=spec.signerName=kubernetes.io/kubelet-serving", "-o", "jsonpath={.items[0].metadata.name}")))
	pods := j.pods()
	for _, from := range pods {
		for _, to := range pods {
			j.await(to+"\n", "exec", from, "--", "/bin/testserver", "wget", "-q", "-T", "20", "-O-",
				"http://apart.default.svc.cluster.local/hostname")
		}
	}
}

// daemonDies kills every daemon of both machines; each is started again, and no container of a Pod is.
func (j *joined) daemonDies() {
	pods := j.restarts()
	for _, m := range []*machine.Machine{j.first, j.second} {
		before := j.processes(m)
		for _, pid := range before {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				j.Fatal(err)
			}
		}
		eventually(j.T, "every unit of "+m.Name+" to have another process", func(context.Context) bool {
			after := j.processes(m)
			for unit, pid := range before {
				if after[unit] == pid || syscall.Kill(after[unit], 0) != nil {
					return false
				}
			}
			return true
		})
	}
	j.worksAgain(pods)
}

// supervisorDies has keel start another one; what has died meanwhile is started too.
func (j *joined) supervisorDies() {
	pods := j.restarts()
	supervisor := j.record(j.second, "supervisor").Process
	agent := j.record(j.second, "keelson-nodeagent.service").Process
	for _, pid := range []int{supervisor.PID, agent.PID} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			j.Fatal(err)
		}
	}
	j.keel(j.second, "join")
	if now := j.record(j.second, "supervisor").Process; now.PID == supervisor.PID || !now.Alive() {
		j.Errorf("no supervisor runs: %+v", now)
	}
	j.worksAgain(pods)
}

// worksAgain sees both nodes ready and a new Deployment run, while the Pods that there were run on.
func (j *joined) worksAgain(pods string) {
	j.await("True True ", "get", "nodes", "-o",
		`jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {end}`)
	j.kubectl("create", "deployment", "again", "--image="+scenario.HelloV1, "--replicas=4")
	j.kubectl("rollout", "status", "deployment", "again", "--timeout=90s")
	j.kubectl("delete", "deployment", "again", "--cascade=foreground")
	if now := j.restarts(); now != pods {
		j.Errorf("the Pods were\n%s\nand are\n%s", pods, now)
	}
}

// reset ends the worker first, whose Node stays until a user deletes it.
func (j *joined) reset() {
	if out := j.keel(j.second, "reset", "--yes"); !strings.Contains(out, "kubectl delete node second") {
		j.Errorf("it does not say that the Node stays:\n%s", out)
	}
	j.kubectl("delete", "node", "second")
	j.await("node/first\n", "get", "nodes", "-o", "name")
	j.keel(j.first, "reset", "--yes")
	for _, m := range []*machine.Machine{j.first, j.second} {
		left, err := os.ReadDir(m.File("units"))
		if err != nil || len(left) > 0 {
			j.Errorf("units of %s: %v, %v", m.Name, left, err)
		}
	}
}

func (j *joined) keel(m *machine.Machine, args ...string) string {
	j.Helper()
	out, err := m.Keel(j.Context(), args...)
	if err != nil {
		j.Fatalf("keel %s on %s: %v\n%s", args[0], m.Name, err, out)
	}
	return out
}

func (j *joined) kubectl(args ...string) string {
	j.Helper()
	out, err := j.first.Kubectl(j.Context(), args...)
	if err != nil {
		j.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// await runs kubectl until it prints that.
func (j *joined) await(want string, args ...string) {
	j.Helper()
	var last string
	eventually(j.T, "kubectl "+strings.Join(args, " ")+" to print "+want, func(context.Context) bool {
		out, err := j.first.Kubectl(j.Context(), args...)
		if last != out {
			j.Logf("it prints %s (%v)", out, err)
		}
		last = out
		return err == nil && out == want
	})
}

// pods returns the Pods of the Deployment, by their nodes.
func (j *joined) pods() map[string]string {
	j.Helper()
	pods := map[string]string{}
	for line := range strings.Lines(j.kubectl("get", "pods", "-l", "app=apart", "-o",
		`jsonpath={range .items[*]}{.spec.nodeName} {.metadata.name}{"\n"}{end}`)) {
		node, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		pods[node] = name
	}
	return pods
}

// restarts returns how often the containers of the Deployment's Pods were started.
func (j *joined) restarts() string {
	j.Helper()
	return j.kubectl("get", "pods", "-l", "app=apart", "--sort-by=.spec.nodeName", "-o",
		`jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[0].restartCount}{"\n"}{end}`)
}

// unitRecord is what keel keeps of a unit.
type unitRecord struct {
	Process subprocess.Process `json:"process"`
}

func (j *joined) record(m *machine.Machine, unit string) (r unitRecord) {
	j.Helper()
	content, err := os.ReadFile(m.File("units", unit+".json"))
	if err != nil {
		j.Fatal(err)
	}
	if err := json.Unmarshal(content, &r); err != nil {
		j.Fatal(err)
	}
	return r
}

// processes returns the processes of a machine's units.
func (j *joined) processes(m *machine.Machine) map[string]int {
	j.Helper()
	files, err := filepath.Glob(m.File("units", "*.service"))
	if err != nil || len(files) == 0 {
		j.Fatalf("no units: %v", err)
	}
	pids := map[string]int{}
	for _, file := range files {
		unit := filepath.Base(file)
		pids[unit] = j.record(m, unit).Process.PID
	}
	return pids
}
