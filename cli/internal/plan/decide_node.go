package plan

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// PauseImage is the image of the container that holds a Pod's namespaces.
const PauseImage = "keelson.dev/pause:1"

// RegistryHosts is the conventional folder in which an operator configures how registries are reached, in
// REGISTRY/hosts.toml. The runtime accepts only one folder.
const RegistryHosts = "/etc/containerd/certs.d"

// ContainerdInput holds what a node's containerd configuration depends on.
type ContainerdInput struct {
	Node NodeLayout
	// Programs is the folder with runc and, below cni/, the network plugins.
	Programs string
	// Streams is the address at which containerd serves streams.
	Streams netip.AddrPort
	// SysResource is set if this process has CAP_SYS_RESOURCE; without it no OOM score may be lowered.
	SysResource bool
	// CgroupDriver is Cgroupfs or Systemd.
	CgroupDriver string
}

// The cgroup drivers: either the runtime manages the cgroups of Pods, or the machine's systemd does.
const (
	Cgroupfs = "cgroupfs"
	Systemd  = "systemd"
)

// ContainerdConfig renders the configuration file of a node's containerd. Everything that containerd keeps is
// below the node's folder, so that it never touches a containerd of the host; the registry configuration in
// RegistryHosts is the one that the host's containerd reads too.
func ContainerdConfig(in ContainerdInput) string {
	return fmt.Sprintf(`# Written by keel.
version = 3
root = %[1]s
state = %[2]s
disabled_plugins = ["io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]

[grpc]
  address = %[3]s

[ttrpc]
  address = %[4]s

[plugins.'io.containerd.internal.v1.opt']
  path = %[5]s

[plugins.'io.containerd.nri.v1.nri']
  disable = true

[plugins.'io.containerd.grpc.v1.cri']
  stream_server_address = %[13]s
  stream_server_port = %[14]s

[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = %[6]s
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = %[15]s

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = %[7]s
  netns_mounts_under_state_dir = true
  enable_unprivileged_ports = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = %[8]s
        Root = %[11]s
        SystemdCgroup = %[12]t
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = [%[9]s]
    conf_dir = %[10]s
`,
		toml(in.Node.Containerd("root")), toml(in.Node.Containerd("state")),
		toml(in.Node.Socket()), toml(in.Node.Socket()+".ttrpc"), toml(in.Node.Containerd("opt")),
		toml(PauseImage), strconv.FormatBool(!in.SysResource), toml(filepath.Join(in.Programs, "runc")),
		toml(filepath.Join(in.Programs, "cni")), toml(in.Node.CNI("conf")), toml(in.Node.Containerd("runc")),
		in.CgroupDriver == Systemd, toml(in.Streams.Addr().String()), toml(strconv.Itoa(int(in.Streams.Port()))),
		toml(RegistryHosts))
}

// toml quotes a string: a JSON string without escapes beyond \uXXXX is a TOML basic string.
func toml(s string) string {
	quoted, _ := json.Marshal(s) // encoding a string cannot fail
	return string(quoted)
}

// HostPortPlugin is the program that forwards ports of the machine to Pods.
const HostPortPlugin = "keelson-hostport"

// ImagesDue lists the archives whose present content a node has not imported, in the order given.
func ImagesDue(archives []string, sums, imported map[string]string) []string {
	var due []string
	for _, archive := range archives {
		if sums[archive] != imported[archive] {
			due = append(due, archive)
		}
	}
	return due
}

// MountsBelow lists the mount points below a folder, the innermost first, from the text of /proc/self/mountinfo.
func MountsBelow(mountinfo, dir string) []string {
	return mountPoints(mountinfo, func(point, _ string) bool {
		return strings.HasPrefix(point, strings.TrimSuffix(dir, "/")+"/")
	})
}

// KeptNamespaces lists the mount points that hold a namespace, from the same text.
func KeptNamespaces(mountinfo string) []string {
	return mountPoints(mountinfo, func(_, filesystem string) bool { return filesystem == "nsfs" })
}

// mountPoints lists the mount points that chosen accepts by path and file system type, the innermost first.
func mountPoints(mountinfo string, chosen func(point, filesystem string) bool) []string {
	var points []string
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(line, " - ") // the number of fields before it varies
		filesystem, _, _ := strings.Cut(after, " ")
		fields := strings.Fields(before)
		if len(fields) < 5 {
			continue
		}
		if point := unescape(fields[4]); chosen(point, filesystem) {
			points = append(points, point)
		}
	}
	// The table is in mount order: a mount on top of another one comes after it.
	for i, j := 0, len(points)-1; i < j; i, j = i+1, j-1 {
		points[i], points[j] = points[j], points[i]
	}
	return points
}

// unescape undoes the kernel's octal escapes for white space and backslashes.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}
