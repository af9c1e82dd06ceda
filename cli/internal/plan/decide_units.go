package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
)

// RevisionVariable is the environment variable of a unit's process that identifies the unit text and the files
// from which it was started.
const RevisionVariable = "KEEL_REVISION"

// Unit is a systemd unit that runs one process of a mesh.
type Unit struct {
	// Name is its file name.
	Name    string
	Process Process
	// Path is the path of the process's program.
	Path string
	// Content is the content of the file. Revision changes with it and with the files that the process reads when
	// it starts.
	Content  string
	Revision string
}

// UnitName returns the unit name of a process. A machine runs at most one node, so the node's name is left out.
func UnitName(process string) string {
	if _, ok := NodeOfAgent(process); ok {
		process = strings.TrimSuffix(nodeagentPrefix, "-")
	}
	if _, ok := NodeOfContainerd(process); ok {
		process = strings.TrimSuffix(containerdPrefix, "-")
	}
	return "keelson-" + process + ".service"
}

// UnitNames returns the names of all units that keel init writes, in start order.
func UnitNames() []string {
	var names []string
	for _, process := range ProcessNames("") {
		names = append(names, UnitName(process))
	}
	return names
}

// unitTraits are the settings in which the units of processes differ.
type unitTraits struct {
	description string
	// kind is the unit's Type.
	kind string
	// after are the processes that must be started before this one, if they are to be started.
	after []string
	// modules are the kernel modules that the process needs and does not load; one that cannot be loaded is built
	// in, or the process that needs it reports the error.
	modules []string
	service []string
}

// traitsOf describes the unit of a process.
func traitsOf(process string) unitTraits {
	if _, ok := NodeOfContainerd(process); ok {
		return unitTraits{
			description: "container runtime", kind: "notify", modules: []string{"overlay"},
			// Containers are children of shims, which run in this unit's cgroup and outlive their containerd.
			service: []string{"Delegate=yes", "KillMode=process", "OOMScoreAdjust=-999", "LimitNPROC=infinity",
				"LimitCORE=infinity"},
		}
	}
	if _, ok := NodeOfAgent(process); ok {
		return unitTraits{
			description: "nodeagent", kind: "exec", after: []string{APIServer, containerdPrefix},
			// Without it, Pods on one bridge do not reach each other through a Service.
			modules: []string{"br_netfilter"},
			service: []string{"OOMScoreAdjust=-999"},
		}
	}
	traits := unitTraits{description: process, kind: "exec"}
	if process != APIServer {
		traits.after = []string{APIServer}
	}
	return traits
}

// DecideUnits renders the units of a mesh whose nodes are separate machines, tier by tier. Sums are the hashes of
// the files that FilesAtStart names.
func DecideUnits(in ProcessInput, sums map[string]string) (tiers [][]Unit) {
	for _, processes := range DecideProcesses(in) {
		var tier []Unit
		for _, process := range processes {
			tier = append(tier, in.unit(process, sums))
		}
		tiers = append(tiers, tier)
	}
	return tiers
}

func (in ProcessInput) unit(process Process, sums map[string]string) Unit {
	sum := sha256.New()
	fmt.Fprint(sum, in.unitText(process, ""))
	if _, agent := NodeOfAgent(process.Name); agent && in.worker() {
		fmt.Fprintln(sum, in.Server) // the agent reads it once, from its own kubeconfig
	}
	for _, file := range in.FilesAtStart(process) {
		fmt.Fprintln(sum, file, sums[file])
	}
	revision := hex.EncodeToString(sum.Sum(nil)[:8])
	return Unit{Name: UnitName(process.Name), Process: process, Path: in.ProgramPath(process),
		Content:  in.unitText(process, revision),
		Revision: revision}
}

// ProcessNames returns the names of the processes of a mesh with these nodes, in start order.
func ProcessNames(nodes ...string) []string {
	names := []string{APIServer}
	for _, node := range nodes {
		names = append(names, ContainerdProcess(node))
	}
	names = append(names, controlPlane[1:]...)
	for _, node := range nodes {
		names = append(names, NodeagentProcess(node))
	}
	return names
}

// FilesAtStart returns keel's files that a process reads only when it starts.
func (in ProcessInput) FilesAtStart(process Process) []string {
	var files []string
	if node, ok := NodeOfContainerd(process.Name); ok {
		files = append(files, in.Layout.Node(node).RuntimeConfig())
	}
	for _, arg := range process.Args {
		_, value, _ := strings.Cut(arg, "=")
		if dir := path.Dir(value); dir == path.Dir(in.Layout.PKI("ca.crt")) ||
			dir == path.Dir(in.Layout.Kubeconfig(AdminCertificate)) {
			files = append(files, value)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// UnitOwner returns the first line of every unit of a mesh, by which keel recognises its own units.
func (l Layout) UnitOwner() string { return l.unitOwner("init", "the mesh") }

// workerUnitOwner returns that line for a worker.
func (l Layout) workerUnitOwner() string { return l.unitOwner("join", "the worker") }

func (l Layout) unitOwner(command, what string) string {
	return "# Written by keel " + command + " for " + what + " in " + l.Dir +
		"; it overwrites changes: use systemctl edit for yours."
}

// OwnsUnit reports whether a unit file with this content belongs to this mesh.
func OwnsUnit(layout Layout, content string) bool {
	first, _, _ := strings.Cut(content, "\n")
	return first == layout.UnitOwner() || first == layout.workerUnitOwner()
}

// UnitOptions returns the programs folder and the log level with which a unit starts its daemon; both are empty if
// keel has not written the text.
func UnitOptions(content string) (programs, logLevel string) {
	for word := range strings.FieldsSeq(content) {
		if program, ok := strings.CutPrefix(word, "ExecStart="); ok {
			programs = path.Dir(program)
		}
		if level, ok := strings.CutPrefix(word, logLevelFlag+"="); ok {
			logLevel = level
		}
	}
	return programs, logLevel
}

// UnitRanges returns the Pod and Service ranges with which a unit starts its process.
func UnitRanges(content string) []netip.Prefix {
	var ranges []netip.Prefix
	for word := range strings.FieldsSeq(content) {
		flag, value, _ := strings.Cut(word, "=")
		if flag != podRangeFlag && flag != serviceRangeFlag {
			continue
		}
		if taken, err := ParseRange(value); err == nil {
			ranges = append(ranges, taken.Networks()...)
		}
	}
	return ranges
}

func (in ProcessInput) unitText(process Process, revision string) string {
	traits, owner := traitsOf(process.Name), in.Layout.UnitOwner()
	if in.worker() {
		owner = in.Layout.workerUnitOwner()
		traits.after = slices.DeleteFunc(traits.after, func(name string) bool { return name == APIServer })
	}
	unit := []string{
		owner, "",
		"[Unit]",
		"Description=Keelson " + traits.description,
	}
	before := []string{"network-online.target"}
	for _, name := range traits.after {
		before = append(before, UnitName(name))
	}
	unit = append(unit, "Wants="+strings.Join(before, " "), "After="+strings.Join(before, " "),
		"RequiresMountsFor="+in.Layout.Dir+" "+in.Programs,
		// A process that waits for another one, or for the network, is restarted until it succeeds.
		"StartLimitIntervalSec=0", "",
		"[Service]",
		"Type="+traits.kind,
		"WorkingDirectory="+in.Layout.Dir,
		// containerd looks for its shim in PATH.
		"Environment=PATH="+in.Programs+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"Environment="+RevisionVariable+"="+revision)
	for _, module := range traits.modules {
		unit = append(unit, "ExecStartPre=-/sbin/modprobe "+module)
	}
	command := append([]string{in.ProgramPath(process)}, process.Args...)
	unit = append(unit, "ExecStart="+strings.Join(command, " \\\n  "), "Restart=always", "RestartSec=1",
		"LimitNOFILE=1048576", "TasksMax=infinity")
	unit = append(unit, traits.service...)
	unit = append(unit, "", "[Install]", "WantedBy=multi-user.target", "")
	return strings.Join(unit, "\n")
}

// plainPath matches paths without characters that have a special meaning in a unit.
var plainPath = regexp.MustCompile(`^/[a-zA-Z0-9/._+@-]*$`)

// CheckUnitPath returns an error if a path cannot be written in a unit.
func CheckUnitPath(flag, file string) error {
	if plainPath.MatchString(file) {
		return nil
	}
	return fmt.Errorf("%s: %q must be an absolute path of letters, digits and /._-+@ to stand in a unit of systemd",
		flag, file)
}
