package stats

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/observed"
)

// network is the traffic of the interfaces in a network namespace; at is zero if it is unknown.
type network struct {
	at time.Time
	// main is the interface that leads out; empty if none does.
	main       string
	interfaces []traffic
}

// traffic is the traffic of one interface since it was created.
type traffic struct {
	name                                    string
	rxBytes, rxPackets, rxErrors, rxDropped uint64
	txBytes, txPackets, txErrors, txDropped uint64
}

// networks hold the traffic of all networks of the node. Unknown networks are missing.
type networks struct {
	node network
	pods map[types.UID]network
}

// networksOf returns the networks of the Pods of a reading. They are read once per reading.
func (c *Collector) networksOf(r *reading) *networks {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.networks != nil && c.last == r {
		return c.networks
	}
	found := &networks{pods: map[types.UID]network{}}
	if n, err := hostNetwork(c.config.Proc); err == nil {
		found.node = c.totals.network(nodeSubject, n)
	}
	for i := range r.pods {
		pod := &r.pods[i].Pod
		if n, err := c.podNetwork(pod); err == nil {
			found.pods[pod.UID] = c.totals.network(string(pod.UID), n)
		}
	}
	if c.last == r {
		c.networks = found
	}
	return found
}

// podNetwork reads the network of the process that keeps the Pod's current sandbox, which belongs to the runtime: a
// container's process may have moved to another namespace. A Pod on the machine's network has none of its own.
func (c *Collector) podNetwork(pod *Pod) (network, error) {
	sandbox := sandboxOf(pod)
	if pod.Spec.HostNetwork || sandbox == "" {
		return network{}, fs.ErrNotExist
	}
	pids, err := c.config.Usage.Processes(pod.Pod, sandbox)
	if err != nil || len(pids) == 0 {
		return network{}, cmp.Or(err, fs.ErrNotExist)
	}
	found, err := readPodNetwork(c.config.Proc, pids[0])
	if err != nil {
		return network{}, err
	}
	// If the process has ended meanwhile, its ID may belong to another one.
	still, err := c.config.Usage.Processes(pod.Pod, sandbox)
	if err == nil && !slices.Contains(still, pids[0]) {
		err = fmt.Errorf("process %d of sandbox %s: %w", pids[0], sandbox, fs.ErrNotExist)
	}
	return found, err
}

// sandboxOf returns the sandbox in which the Pod's newest container runs; empty if none runs.
func sandboxOf(pod *Pod) string {
	newest := slices.IndexFunc(pod.Running, func(c observed.Container) bool { return c.SandboxID != "" })
	if newest < 0 {
		return ""
	}
	return pod.Running[newest].SandboxID
}

// podInterface is the name that container runtimes give a Pod's interface.
const podInterface = "eth0"

// readPodNetwork reads the network of the Pod in whose namespace a process is.
func readPodNetwork(proc string, pid int) (network, error) {
	n, err := readNetwork(filepath.Join(proc, strconv.Itoa(pid), "net"))
	for _, t := range n.interfaces {
		if t.name == podInterface {
			n.main = podInterface
		}
	}
	return n, err
}

// hostNetwork reads the network of the machine, without the host ends of the Pods' interfaces.
func hostNetwork(proc string) (network, error) {
	dir := filepath.Join(proc, "self", "net")
	n, err := readNetwork(dir)
	if err != nil {
		return network{}, err
	}
	kept := n.interfaces[:0]
	for _, t := range n.interfaces {
		if !strings.HasPrefix(t.name, "veth") {
			kept = append(kept, t)
		}
	}
	n.interfaces = kept
	if routes, err := os.ReadFile(filepath.Join(dir, "route")); err == nil { // missing without IPv4
		n.main = defaultInterface(string(routes))
	}
	return n, nil
}

func readNetwork(dir string) (network, error) {
	data, err := os.ReadFile(filepath.Join(dir, "dev"))
	if err != nil {
		return network{}, fmt.Errorf("reading what went over the network: %w", err)
	}
	return network{at: time.Now(), interfaces: parseInterfaces(string(data))}, nil
}

// parseInterfaces parses proc_pid_net(5), dev. It skips the loopback interface.
func parseInterfaces(dev string) []traffic {
	var all []traffic
	for _, line := range strings.Split(dev, "\n") {
		name, figures, ok := strings.Cut(line, ":")
		fields := strings.Fields(figures)
		if name = strings.TrimSpace(name); !ok || name == "lo" || len(fields) < 12 {
			continue
		}
		all = append(all, traffic{name: name, rxBytes: number(fields[0]), rxPackets: number(fields[1]),
			rxErrors: number(fields[2]), rxDropped: number(fields[3]), txBytes: number(fields[8]),
			txPackets: number(fields[9]), txErrors: number(fields[10]), txDropped: number(fields[11])})
	}
	return all
}

// defaultInterface parses proc_pid_net(5), route, and returns the interface of the default route.
func defaultInterface(routes string) string {
	for _, line := range strings.Split(routes, "\n") {
		fields := strings.Fields(line)
		if len(fields) > 7 && fields[1] == "00000000" && fields[7] == "00000000" {
			return fields[0]
		}
	}
	return ""
}
