// Package plan decides what a mesh on one machine looks like: which files, certificates, address ranges, ports and
// processes it has. Everything here is computed from values; the packages beside it look at the machine and carry the
// plan out.
//
//keelson:decision
package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
)

// Layout names the files of a data directory.
type Layout struct {
	// Dir is the data directory, absolute and clean.
	Dir string
}

// maxSocketPath is what the kernel takes for a socket, less the room that containerd needs for its own suffix.
const maxSocketPath = 107 - len(".ttrpc")

// Validate says whether sockets below the data directory can exist.
func (l Layout) Validate() error {
	longest := l.Node("node-999").Socket()
	if over := len(longest) - maxSocketPath; over > 0 {
		return fmt.Errorf("--data-dir: %s is %d characters too long for the sockets in it, at most %d are possible",
			l.Dir, over, len(l.Dir)-over)
	}
	return nil
}

// ValidateNode says whether a node of that name can have its socket there.
func (l Layout) ValidateNode(name string) error {
	if over := len(l.Node(name).Socket()) - maxSocketPath; over > 0 {
		return fmt.Errorf("--node-name: %s is %d characters too long for a socket below %s: give a shorter name", name,
			over, l.Dir)
	}
	return nil
}

// ID tells the meshes of one machine apart wherever the kernel has one name for all: bridges, cgroups, firewall tables.
func (l Layout) ID() string {
	sum := l.sum()
	return hex.EncodeToString(sum[:])
}

func (l Layout) sum() [3]byte {
	sum := sha256.Sum256([]byte(l.Dir))
	return [3]byte(sum[:])
}

// State is the record of what was started.
func (l Layout) State() string { return filepath.Join(l.Dir, "keel.json") }

// Lock is held while keel changes the mesh.
func (l Layout) Lock() string { return filepath.Join(l.Dir, "keel.lock") }

// PKI is the file of a certificate or key, for example "ca.crt".
func (l Layout) PKI(file string) string { return filepath.Join(l.Dir, "pki", file) }

// Kubeconfig is the connection file of a user of the API.
func (l Layout) Kubeconfig(who string) string {
	return filepath.Join(l.Dir, "kubeconfig", who+".kubeconfig")
}

// Log is the output of a process.
func (l Layout) Log(process string) string { return filepath.Join(l.Dir, "logs", process+".log") }

// Units is the folder of units where keel itself runs them.
func (l Layout) Units() string { return filepath.Join(l.Dir, "units") }

// APIServer is the store's directory.
func (l Layout) APIServer() string { return filepath.Join(l.Dir, "apiserver") }

// NetworkTable is the firewall table of the mesh.
func (l Layout) NetworkTable() string { return "keelson-" + l.ID() }

// PortTable is the firewall table of the ports that lead to Pods. It outlives an up, which writes the other one anew.
func (l Layout) PortTable() string { return l.NetworkTable() + "-ports" }

// ServiceTable is the firewall table in which a node's agent carries the traffic of Services.
func (l Layout) ServiceTable(node string) string { return l.NetworkTable() + "-services-" + node }

// Number is the ID where the kernel takes numbers alone: for a VXLAN, and for the claims of ranges. It is never 0.
func (l Layout) Number() int {
	sum := l.sum()
	return max(1, int(sum[0])<<16|int(sum[1])<<8|int(sum[2]))
}

// CgroupRoot is the cgroup above all of the mesh's Pods.
func (l Layout) CgroupRoot() string { return "/keelson-" + l.ID() }

// CgroupSlice is what systemd calls CgroupRoot.
func (l Layout) CgroupSlice() string { return "keelson_" + l.ID() + ".slice" }

// Nodes is the folder of all nodes.
func (l Layout) Nodes() string { return filepath.Join(l.Dir, "nodes") }

// NetNS is the file of a node's network namespace.
func (l Layout) NetNS(node string) string { return filepath.Join(l.Dir, "netns", node) }

// Hosts is the folder of what makes nodes hosts of their own beside the machine: it keeps mount namespaces, for which
// it is a mount itself.
func (l Layout) Hosts() string { return filepath.Join(l.Dir, "hosts") }

// UTSNS is the file of the namespace with a node's host name.
func (l Layout) UTSNS(node string) string { return filepath.Join(l.Hosts(), node+".uts") }

// MountNS is the file of a node's mount namespace.
func (l Layout) MountNS(node string) string { return filepath.Join(l.Hosts(), node+".mnt") }

// Node names the files of one node.
func (l Layout) Node(name string) NodeLayout {
	return NodeLayout{Name: name, Dir: filepath.Join(l.Nodes(), name), mesh: l}
}

// NodeLayout names the files of one node.
type NodeLayout struct {
	Name string
	Dir  string
	mesh Layout
}

// Socket is where the node's containerd listens.
func (n NodeLayout) Socket() string { return filepath.Join(n.Dir, "containerd.sock") }

// shimSockets is where the shims of every containerd of the machine listen.
const shimSockets = "/run/containerd/s"

// ShimSocket is where the shim of a Pod listens: containerd names it by what it hashes to, so that no two meet.
func (n NodeLayout) ShimSocket(sandbox string) string {
	sum := sha256.Sum256([]byte(filepath.Join(n.Socket(), "k8s.io", sandbox)))
	return filepath.Join(shimSockets, hex.EncodeToString(sum[:]))
}

// Containerd is the file or folder of that name that belongs to the node's containerd.
func (n NodeLayout) Containerd(name string) string { return filepath.Join(n.Dir, "containerd", name) }

// RuntimeConfig is the configuration file of the node's containerd.
func (n NodeLayout) RuntimeConfig() string { return n.Containerd("config.toml") }

// CNI is the folder of that name that belongs to the Pods' network.
func (n NodeLayout) CNI(name string) string { return filepath.Join(n.Dir, "cni", name) }

// Agent is the nodeagent's own directory, with the Pods' directories and its records.
func (n NodeLayout) Agent() string { return filepath.Join(n.Dir, "agent") }

// PodLogs is the folder of the containers' logs.
func (n NodeLayout) PodLogs() string { return filepath.Join(n.Dir, "podlogs") }

// Kubeconfig is by what the agent of a worker reaches the apiserver, once it has a certificate. It lies beside the
// files that keel makes of its own: the agent writes it.
func (n NodeLayout) Kubeconfig() string { return filepath.Join(n.Dir, "kubeconfig") }

// BootstrapKubeconfig is by what that agent asks for its first certificate: it holds a bootstrap token.
func (n NodeLayout) BootstrapKubeconfig() string { return filepath.Join(n.Dir, "bootstrap-kubeconfig") }

// CgroupRoot is the cgroup above the node's Pods.
func (n NodeLayout) CgroupRoot() string { return n.mesh.CgroupRoot() + "/" + n.Name }

// NodeName is the name of the node at an index that counts from 0.
func NodeName(index int) string { return fmt.Sprintf("node-%d", index+1) }

// BridgeName fits the kernel's 15 characters up to node 999.
func (l Layout) BridgeName(index int) string { return fmt.Sprintf("%s%d", l.LinkPrefix(), index+1) }

// NodesBridge is where the nodes' own networks meet, LinkName the end there of a node's link.
func (l Layout) NodesBridge() string { return l.LinkPrefix() + "n" }

// LinkName fits the kernel's 15 characters as BridgeName does.
func (l Layout) LinkName(index int) string { return fmt.Sprintf("%sv%d", l.LinkPrefix(), index+1) }

// Tables are what the names of all firewall tables of the mesh and its daemons begin with, and no other mesh's.
func (l Layout) Tables() []string {
	return []string{l.NetworkTable(), "keelson-pods-" + l.LinkPrefix()}
}

// LinkPrefix is what the names of all links of the mesh and its daemons begin with, and no other interface's.
func (l Layout) LinkPrefix() string { return "keel" + l.ID() + "-" }
