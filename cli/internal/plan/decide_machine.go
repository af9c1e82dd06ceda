package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Machine is what a machine has of what a mesh of units stands on.
type Machine struct {
	Root bool
	// Systemd tells that it runs the machine, Systemctl that its tool is there. Without it, keel runs the units itself.
	Systemd, Systemctl bool
	Cgroups            Cgroups
	// HostsFile tells that there is an /etc/hosts.
	HostsFile bool
	// Addressed tells that the machine has an IPv4 address beside its loopback ones.
	Addressed bool
	// Worker tells that the machine is to run a node of another machine's mesh and nothing else, Children that the mesh
	// is to be of keel up, without units.
	Worker, Children bool
	// MissingPrograms are those that are not in Programs.
	Programs        string
	MissingPrograms []string
	// ForeignUnits are files of the names of our units that are not this mesh's, with their first lines.
	ForeignUnits map[string]string
	// Clock tells whether anything keeps the machine's clock.
	Clock ClockState
	// Swap are the devices and files that the kernel swaps to.
	Swap []string
	Disk Disk
	// Modules is what can be known of the kernel's modules; Modprobe tells that there is a tool that loads them.
	Modules  map[string]ModuleState
	Modprobe bool
}

// Cgroups is what the machine limits processes by.
type Cgroups struct {
	// Mounted tells that there are any, Unified that they are version 2 alone.
	Mounted, Unified bool
	// Controllers are those that are switched on.
	Controllers []string
}

// neededControllers hold Pods to their limits.
var neededControllers = []string{"cpu", "memory", "pids"}

// MachineProblems says in one sentence each what keeps a mesh from running on a machine.
func MachineProblems(m Machine) []string {
	var problems []string
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	add(!m.Root, "root is needed to run containers and to write units: run keel as root")
	units := !m.Children
	add(units && m.Systemd && !m.Systemctl, "systemctl is not installed: install systemd's own tools")
	problems = append(problems, m.Cgroups.problems()...)
	add(!m.Addressed && !m.Worker && units,
		"this machine has no IPv4 address that Pods could reach it at: configure its network first")
	add(!m.HostsFile, "there is no /etc/hosts, which containerd copies for each Pod: make one that names localhost")
	add(len(m.MissingPrograms) > 0, "--programs: %s lacks %s: make build makes them", m.Programs,
		strings.Join(m.MissingPrograms, ", "))
	for _, name := range UnitNames() {
		line, foreign := m.ForeignUnits[name]
		add(foreign, "%s is there and not of this mesh, it begins with %q: end that one first (keel reset with its "+
			"--data-dir)", name, line)
	}
	return problems
}

func (c Cgroups) problems() []string {
	if !c.Mounted {
		return []string{"no cgroups are mounted in /sys/fs/cgroup: Pods could not be limited"}
	}
	var missing []string
	for _, controller := range neededControllers {
		if !slices.Contains(c.Controllers, controller) {
			missing = append(missing, controller)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the kernel's cgroup controllers are switched off: %s: start the machine with "+
		"cgroup_enable=%s among the kernel's arguments", strings.Join(missing, ", "), strings.Join(missing, ","))}
}

// CgroupControllers lists the controllers that are switched on: of version 2 from the text of cgroup.controllers, of
// version 1 from that of /proc/cgroups.
func CgroupControllers(unified bool, text string) []string {
	if unified {
		return strings.Fields(text)
	}
	var controllers []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 4 && fields[3] == "1" && fields[1] != "0" {
			controllers = append(controllers, fields[0])
		}
	}
	return controllers
}
