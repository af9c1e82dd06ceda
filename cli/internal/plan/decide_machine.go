package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Machine describes what a machine has of the things that a mesh needs.
type Machine struct {
	Root bool
	// Systemd is set if systemd runs the machine, Systemctl if its tool is installed. Without systemd, keel runs
	// the units itself.
	Systemd, Systemctl bool
	Cgroups            Cgroups
	// HostsFile is set if there is an /etc/hosts.
	HostsFile bool
	// Addressed is set if the machine has an IPv4 address besides loopback.
	Addressed bool
	// Worker is set if the machine only runs a node of another machine's mesh, Children if keel up runs the mesh,
	// without units.
	Worker, Children bool
	// MissingPrograms are the required programs that the folder Programs lacks.
	Programs        string
	MissingPrograms []string
	// ForeignUnits maps the unit files that have our names but are not this mesh's to their first lines.
	ForeignUnits map[string]string
	// Clock says whether the machine's clock is synchronised.
	Clock ClockState
	// Swap are the devices and files that the kernel swaps to.
	Swap []string
	Disk Disk
	// Modules is what is known about the kernel's modules; Modprobe is set if there is a tool that loads them.
	Modules  map[string]ModuleState
	Modprobe bool
}

// Cgroups describes the machine's cgroups.
type Cgroups struct {
	// Mounted is set if cgroups are mounted, Unified if they are version 2 only.
	Mounted, Unified bool
	// Controllers are the enabled controllers.
	Controllers []string
}

// neededControllers enforce the limits of Pods.
var neededControllers = []string{"cpu", "memory", "pids"}

// MachineProblems lists, in one sentence each, the reasons why a mesh cannot run on a machine.
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

// CgroupControllers lists the enabled controllers: for version 2 from the text of cgroup.controllers, for version
// 1 from that of /proc/cgroups.
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
