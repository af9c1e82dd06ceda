// Package plan decides which files, certificates, address ranges, ports and processes a mesh on one machine has.
// Everything here is computed from values; other packages examine the machine and carry out the plan.
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

// maxSocketPath is the longest socket path that the kernel accepts, less containerd's own suffix.
const maxSocketPath = 107 - len(".ttrpc")

// Validate returns an error if socket paths below the data directory would be too long.
func (l Layout) Validate() error {
	longest := l.Node("node-999").Socket()
	if over := len(longest) - maxSocketPath; over > 0 {
		return fmt.Errorf("--data-dir: %s is %d characters too long for the sockets in it, at most %d are possible",
			l.Dir, over, len(l.Dir)-over)
	}
	return nil
}

// ValidateNode returns an error if the socket path of a node of that name would be too long.
func (l Layout) ValidateNode(name string) error {
	if over := len(l.Node(name).Socket()) - maxSocketPath; over > 0 {
		return fmt.Errorf("--node-name: %s is %d characters too long for a socket below %s: give a shorter name", name,
			over, l.Dir)
	}
	return nil
}

// ID distinguishes the meshes of one machine in names that the kernel shares between them: bridges, cgroups,
// firewall tables.
func (l Layout) ID() string {
	sum := l.sum()
	return hex.EncodeToString(sum[:])
}

func (l Layout) sum() [3]byte {
	sum := sha256.Sum256([]byte(l.Dir))
	return [3]byte(sum[:])
}

// State is the file that records what was started.
func (l Layout) State() string { return filepath.Join(l.Dir, "keel.json") }

// Lock is the file that keel locks while it changes the mesh.
func (l Layout) Lock() string { return filepath.Join(l.Dir, "keel.lock") }

// PKI is the path of a certificate or key, for example "ca.crt".
func (l Layout) PKI(file string) string { return filepath.Join(l.Dir, "pki", file) }

// Kubeconfig is the kubeconfig of a user of the API.
func (l Layout) Kubeconfig(who string) string {
	return filepath.Join(l.Dir, "kubeconfig", who+".kubeconfig")
}

// Log is the file with the output of a process.
func (l Layout) Log(process string) string { return filepath.Join(l.Dir, "logs", process+".log") }

// Units is the folder of units if keel itself runs them.
func (l Layout) Units() string { return filepath.Join(l.Dir, "units") }

// Upgrade is the folder of what keel upgrade keeps: the programs from before, and what it has done with each daemon.
func (l Layout) Upgrade() string { return filepath.Join(l.Dir, "upgrade") }

// APIServer is the store's directory.
func (l Layout) APIServer() string { return filepath.Join(l.Dir, "apiserver") }

// NetworkTable is the firewall table of the mesh.
func (l Layout) NetworkTable() string { return "keelson-" + l.ID() }

// PortTable is the firewall table of the ports that are forwarded to Pods. keel up keeps it, and rewrites
// NetworkTable.
func (l Layout) PortTable() string { return l.NetworkTable() + "-ports" }

// ServiceTable is the firewall table with which a node's agent forwards Service traffic.
func (l Layout) ServiceTable(node string) string { return l.NetworkTable() + "-services-" + node }

// Number is the ID as a number, for places where the kernel accepts only numbers: the VXLAN ID and the claims of
// ranges. It is never 0.
func (l Layout) Number() int {
	sum := l.sum()
	return max(1, int(sum[0])<<16|int(sum[1])<<8|int(sum[2]))
}

// CgroupRoot is the parent cgroup of all of the mesh's Pods.
func (l Layout) CgroupRoot() string { return "/keelson-" + l.ID() }

// CgroupSlice is systemd's name for CgroupRoot.
func (l Layout) CgroupSlice() string { return "keelson_" + l.ID() + ".slice" }

// Nodes is the folder of all nodes.
func (l Layout) Nodes() string { return filepath.Join(l.Dir, "nodes") }

// NetNS is the file of a node's network namespace.
func (l Layout) NetNS(node string) string { return filepath.Join(l.Dir, "netns", node) }

// Hosts is the folder of the namespaces that make nodes separate hosts. It is a mount point itself, because it
// holds mount namespaces.
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

// Socket is the socket of the node's containerd.
func (n NodeLayout) Socket() string { return filepath.Join(n.Dir, "containerd.sock") }

// shimSockets is the folder with the sockets of the shims of every containerd on the machine.
const shimSockets = "/run/containerd/s"

// ShimSocket is the socket of the shim of a Pod: containerd names it by the hash of its own socket, its namespace
// and the sandbox, so that names do not collide.
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

// Kubeconfig is the kubeconfig with which the agent of a worker reaches the apiserver once it has a certificate.
// It lies outside the folder of the kubeconfigs that keel writes: the agent writes it.
func (n NodeLayout) Kubeconfig() string { return filepath.Join(n.Dir, "kubeconfig") }

// BootstrapKubeconfig is the kubeconfig with which that agent requests its first certificate: it holds a bootstrap
// token.
func (n NodeLayout) BootstrapKubeconfig() string { return filepath.Join(n.Dir, "bootstrap-kubeconfig") }

// CgroupRoot is the parent cgroup of the node's Pods.
func (n NodeLayout) CgroupRoot() string { return n.mesh.CgroupRoot() + "/" + n.Name }

// NodeName is the name of the node at an index that counts from 0.
func NodeName(index int) string { return fmt.Sprintf("node-%d", index+1) }

// BridgeName fits the kernel's 15 characters up to node 999.
func (l Layout) BridgeName(index int) string { return fmt.Sprintf("%s%d", l.LinkPrefix(), index+1) }

// NodesBridge is the bridge that connects the nodes' network namespaces. LinkName is the bridge's end of a node's
// link.
func (l Layout) NodesBridge() string { return l.LinkPrefix() + "n" }

// LinkName fits the kernel's 15 characters as BridgeName does.
func (l Layout) LinkName(index int) string { return fmt.Sprintf("%sv%d", l.LinkPrefix(), index+1) }

// Tables are the name prefixes of all firewall tables of the mesh and its daemons; no other mesh's tables have
// them.
func (l Layout) Tables() []string {
	return []string{l.NetworkTable(), "keelson-pods-" + l.LinkPrefix()}
}

// LinkPrefix is the name prefix of all links of the mesh and its daemons; no other interface has it.
func (l Layout) LinkPrefix() string { return "keel" + l.ID() + "-" }
