package plan

import (
	"slices"
	"strings"
	"testing"
)

// A module is only reported missing if the kernel has a list and the module is not in it.
func TestFindModule(t *testing.T) {
	const options = "CONFIG_NFT_CT=y\nCONFIG_VXLAN=m\n# CONFIG_NFT_FIB is not set\n"
	const dep = "kernel/drivers/net/vxlan/vxlan.ko.zst: kernel/net/nft_nat.ko.zst\nkernel/net/nft-ct.ko:\n"
	const builtIn = "kernel/fs/overlayfs/overlay.ko\n"
	for name, row := range map[string]struct {
		module string
		loaded bool
		lists  KernelLists
		want   ModuleState
	}{
		"loaded":                       {"vxlan", true, KernelLists{}, ModuleThere},
		"built in":                     {"overlay", false, KernelLists{BuiltIn: builtIn, Loadable: dep}, ModuleThere},
		"built in, by the options":     {"nft_ct", false, KernelLists{Options: options}, ModuleThere},
		"packed":                       {"vxlan", false, KernelLists{Loadable: dep}, ModuleLoadable},
		"with another's spelling":      {"nft_ct", false, KernelLists{Loadable: dep}, ModuleLoadable},
		"only what another needs":      {"nft_nat", false, KernelLists{BuiltIn: builtIn, Loadable: dep}, ModuleMissing},
		"in no list":                   {"nft_fib", false, KernelLists{BuiltIn: builtIn, Loadable: dep}, ModuleMissing},
		"perhaps built in":             {"nft_fib", false, KernelLists{Loadable: dep}, ModuleUnknown},
		"not among the options":        {"nft_fib", false, KernelLists{Options: options}, ModuleMissing},
		"a module whose folder is not": {"vxlan", false, KernelLists{Options: options}, ModuleUnknown},
		"no list at all":               {"vxlan", false, KernelLists{BuiltIn: builtIn}, ModuleUnknown},
	} {
		if got := FindModule(row.module, row.loaded, row.lists); got != row.want {
			t.Errorf("%s: %s is %s, want %s", name, row.module, got, row.want)
		}
	}
}

// Only modules that the mesh's network needs are reported missing.
func TestModuleFindings(t *testing.T) {
	for name, row := range map[string]struct {
		state          ModuleState
		network, proxy string
		modprobe       bool
		problems       string
		warnings       []string
	}{
		"all is there": {ModuleThere, VXLAN, NFTables, false, "", nil},
		"nothing, with all that keel can do": {ModuleMissing, VXLAN, NFTables, true,
			"overlay vxlan nf_tables nft_ct nft_masq nft_nat nft_fib nft_numgen nft_reject",
			[]string{"the kernel has no module br_netfilter, which Services between Pods of one node needs"}},
		"nothing, without VXLAN": {ModuleMissing, Routes, NFTables, true,
			"overlay nf_tables nft_ct nft_masq nft_nat nft_fib nft_numgen nft_reject", []string{"br_netfilter"}},
		"nothing, and others carry Services": {ModuleMissing, Routes, Others, true,
			"overlay nf_tables nft_ct nft_masq", nil},
		"nothing, and others do all": {ModuleMissing, Others, Others, true, "overlay", nil},
		"all can be loaded":          {ModuleLoadable, Others, Others, true, "", nil},
		"none can be loaded": {ModuleLoadable, Others, Others, false, "",
			[]string{"there is no /sbin/modprobe to load overlay: install kmod"}},
		"nothing is known": {ModuleUnknown, Others, Others, false, "",
			[]string{"whether the kernel has overlay cannot be told"}},
	} {
		m := Machine{Modprobe: row.modprobe, Modules: map[string]ModuleState{}}
		for _, module := range ModuleNames() {
			m.Modules[module] = row.state
		}
		var named []string
		for _, problem := range m.ModuleProblems(row.network, row.proxy) {
			_, rest, _ := strings.Cut(problem, "the kernel has no module ")
			module, _, _ := strings.Cut(rest, ",")
			named = append(named, module)
		}
		if got := strings.Join(named, " "); got != row.problems {
			t.Errorf("%s: lacking are %q, want %q", name, got, row.problems)
		}
		expectSentences(t, name, m.ModuleWarnings(row.network, row.proxy), row.warnings)
	}
}

func expectSentences(t *testing.T, name string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %q, want %q", name, got, want)
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) || strings.Contains(got[i], "\n") {
			t.Errorf("%s: got %q, want %q", name, got[i], want[i])
		}
	}
}

func TestMachineWarnings(t *testing.T) {
	disk := func(free, inodes uint64) Disk {
		return Disk{Path: "/d", Bytes: 100 << 20, BytesFree: free << 20, Inodes: 1000, InodesFree: inodes}
	}
	shared := disk(1, 1)
	shared.Shared = true
	full := disk(0, 1000)
	full.Shared = true
	for name, row := range map[string]struct {
		machine Machine
		want    []string
	}{
		"none":                 {Machine{Clock: ClockKept, Disk: disk(15, 50)}, nil},
		"not looked at":        {Machine{}, nil},
		"a clock of nobody":    {Machine{Clock: ClockFree}, []string{"nothing keeps this machine's clock"}},
		"a clock that is mute": {Machine{Clock: ClockUnknown}, nil},
		"swap": {Machine{Swap: []string{"/a", "/b"}, Cgroups: Cgroups{Unified: true}},
			[]string{"this machine swaps to /a, /b: Pods have none of it by default, but the daemons may be slowed, " +
				"and a node with --fail-swap-on does not start"}},
		"swap beside version 1": {Machine{Swap: []string{"/a"}},
			[]string{"on cgroups of version 1 Pods without a limit of memory are swapped out"}},
		"a full disk": {Machine{Disk: disk(14, 1000)},
			[]string{"the disk of /d has 14% left, and with less than 15%"}},
		"too many files":        {Machine{Disk: disk(50, 49)}, []string{"room for 49 more files"}},
		"a disk that is shared": {Machine{Disk: shared}, nil},
		"one that is full":      {Machine{Disk: full}, []string{"the disk of /d has 0% left, and with less than 1%"}},
		"one without inodes":    {Machine{Disk: Disk{Bytes: 100, BytesFree: 100}}, nil},
	} {
		expectSentences(t, name, MachineWarnings(row.machine), row.want)
	}
}

// A first run needs room; one that has its images needs no more.
func TestDiskProblems(t *testing.T) {
	disk := Disk{Path: "/d", Bytes: 1 << 40, BytesFree: 256<<20 + 2*100, Archives: 100}
	expectSentences(t, "just enough", disk.Problems(), nil)
	disk.BytesFree--
	expectSentences(t, "a byte less", disk.Problems(), []string{"the disk of /d has 256 MiB left, and the images and " +
		"the store need 256 MiB: make room, or choose another disk by --data-dir"})
	disk.Archives = 0
	expectSentences(t, "another run", disk.Problems(), nil)
	expectSentences(t, "not looked at", Disk{Archives: 1}.Problems(), nil)
}

func TestSwapDevices(t *testing.T) {
	const head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
	for text, want := range map[string][]string{"": nil, head: nil,
		head + "/dev/sda2  partition\t1\t0\t-2\n/swap\\040file\t1\t0\t-3\n": {"/dev/sda2", `/swap\040file`}} {
		if got := SwapDevices(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// keel up needs no address of the machine and does not complain without one.
func TestMachineOfChildren(t *testing.T) {
	machine := goodMachine()
	machine.Systemd, machine.Systemctl, machine.Addressed, machine.Children = false, false, false, true
	expectSentences(t, "keel up", MachineProblems(machine), nil)
	machine.Children = false
	expectSentences(t, "keel init", MachineProblems(machine), []string{"no IPv4 address"})
}
