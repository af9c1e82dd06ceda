package plan

import (
	"slices"
	"strings"
	"testing"
)

func goodMachine() Machine {
	return Machine{Root: true, Systemd: true, Systemctl: true, Addressed: true, HostsFile: true, Programs: "/p",
		Cgroups: Cgroups{Mounted: true, Unified: true, Controllers: []string{"cpu", "memory", "pids", "io"}}}
}

func TestMachineProblems(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*Machine)
		want   []string
	}{
		"none":       {func(*Machine) {}, nil},
		"not root":   {func(m *Machine) { m.Root = false }, []string{"root is needed"}},
		"no systemd": {func(m *Machine) { m.Systemd, m.Systemctl = false, false }, nil},
		"no systemctl": {func(m *Machine) { m.Systemctl = false },
			[]string{"systemctl is not installed"}},
		"no cgroups": {func(m *Machine) { m.Cgroups = Cgroups{} },
			[]string{"no cgroups are mounted in /sys/fs/cgroup"}},
		"no memory": {func(m *Machine) { m.Cgroups.Controllers = []string{"cpu", "pids"} },
			[]string{"cgroup_enable=memory"}},
		"two are off": {func(m *Machine) { m.Cgroups.Controllers = []string{"cpu"} },
			[]string{"switched off: memory, pids: "}},
		"three are off": {func(m *Machine) { m.Cgroups.Controllers = nil },
			[]string{"cgroup_enable=cpu,memory,pids"}},
		"version 1":  {func(m *Machine) { m.Cgroups.Unified = false }, nil},
		"no address": {func(m *Machine) { m.Addressed = false }, []string{"no IPv4 address"}},
		"no hosts":   {func(m *Machine) { m.HostsFile = false }, []string{"there is no /etc/hosts"}},
		"half built": {func(m *Machine) { m.MissingPrograms = []string{"runc", "ctr"} },
			[]string{"--programs: /p lacks runc, ctr:"}},
		"another's unit": {func(m *Machine) { m.ForeignUnits = map[string]string{UnitName(PodGC): "# hello"} },
			[]string{`keelson-podgc.service is there and not of this mesh, it begins with "# hello"`}},
		"all at once": {func(m *Machine) { *m = Machine{MissingPrograms: []string{"x"}} },
			[]string{"root", "cgroups", "IPv4", "/etc/hosts", "--programs"}},
	} {
		t.Run(name, func(t *testing.T) {
			machine := goodMachine()
			row.change(&machine)
			got := MachineProblems(machine)
			if len(got) != len(row.want) {
				t.Fatalf("got %q", got)
			}
			for i, want := range row.want {
				if !strings.Contains(got[i], want) || strings.Contains(got[i], "\n") {
					t.Errorf("got %q, want %q", got[i], want)
				}
			}
		})
	}
}

func TestCgroupControllers(t *testing.T) {
	const v1 = `#subsys_name	hierarchy	num_cgroups	enabled
cpu	1	21	1
memory	4	47	0
pids	8	21	1
hugetlb	0	21	1
`
	for name, row := range map[string]struct {
		unified bool
		text    string
		want    []string
	}{
		"version 2":              {true, "cpu io memory pids\n", []string{"cpu", "io", "memory", "pids"}},
		"version 2 without any":  {true, "\n", nil},
		"version 1, off or bare": {false, v1, []string{"cpu", "pids"}},
	} {
		if got := CgroupControllers(row.unified, row.text); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
