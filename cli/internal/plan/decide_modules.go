package plan

import (
	"fmt"
	"slices"
	"strings"
)

// ModuleState is what is known about a kernel module without loading it.
type ModuleState string

const (
	// ModuleThere is loaded or built in.
	ModuleThere ModuleState = "there"
	// ModuleLoadable is in the kernel's module folder.
	ModuleLoadable ModuleState = "loadable"
	// ModuleMissing is in none of the kernel's lists of modules and options.
	ModuleMissing ModuleState = "missing"
	// ModuleUnknown is not loaded, and there is no list.
	ModuleUnknown ModuleState = "unknown"
)

// Names of the modules that more than one place needs.
const (
	overlayModule = "overlay"
	bridgeModule  = "br_netfilter"
	vxlanModule   = "vxlan"
)

// module is one that a mesh needs.
type module struct {
	name string
	// option is its kernel configuration option, without CONFIG_.
	option string
	// use is what the mesh needs it for.
	use string
	// vital is set if a mesh that needs it cannot run without it.
	vital bool
	// needed reports whether a mesh with this network needs the module.
	needed func(podNetwork, serviceProxy string) bool
}

func always(string, string) bool             { return true }
func overVXLAN(network, _ string) bool       { return network == VXLAN }
func firewalls(network, proxy string) bool   { return network != Others || proxy == NFTables }
func carriesTraffic(_ string, p string) bool { return p == NFTables }

// modules are the modules that a mesh may need, in the order in which keel names them.
var modules = []module{
	{overlayModule, "OVERLAY_FS", "the file systems of containers", true, always},
	{vxlanModule, "VXLAN", "the network between nodes (--pod-network=vxlan)", true, overVXLAN},
	{"nf_tables", "NF_TABLES", "the firewall tables of Pods and Services", true, firewalls},
	{"nft_ct", "NFT_CT", "the firewall tables of Pods and Services", true, firewalls},
	{"nft_masq", "NFT_MASQ", "the way of Pods beyond the mesh", true, firewalls},
	{"nft_nat", "NFT_NAT", "the traffic of Services", true, carriesTraffic},
	{"nft_fib", "NFT_FIB", "the traffic of Services", true, carriesTraffic},
	{"nft_numgen", "NFT_NUMGEN", "the traffic of Services", true, carriesTraffic},
	{"nft_reject", "NFT_REJECT", "the traffic of Services", true, carriesTraffic},
	{bridgeModule, "BRIDGE_NETFILTER", "Services between Pods of one node", false, carriesTraffic},
}

// ModuleNames returns the names of all modules that a mesh may need.
func ModuleNames() []string {
	var names []string
	for _, m := range modules {
		names = append(names, m.name)
	}
	return names
}

// KernelLists are the texts of a machine's lists of kernel modules; a missing list is empty.
type KernelLists struct {
	// BuiltIn and Loadable are modules.builtin and modules.dep of the running kernel, Options its configuration.
	BuiltIn, Loadable, Options string
}

// FindModule returns what is known about a module; loaded is set if it is loaded.
func FindModule(name string, loaded bool, lists KernelLists) ModuleState {
	option := ""
	if i := slices.IndexFunc(modules, func(m module) bool { return m.name == name }); i >= 0 {
		option = "CONFIG_" + modules[i].option + "="
	}
	switch {
	case loaded || hasModule(lists.BuiltIn, name) || hasLine(lists.Options, option+"y"):
		return ModuleThere
	case hasModule(lists.Loadable, name):
		return ModuleLoadable
	case lists.Loadable != "" && lists.BuiltIn != "":
		return ModuleMissing
	case lists.Options != "" && !hasLine(lists.Options, option+"m"):
		return ModuleMissing
	}
	return ModuleUnknown
}

// hasModule looks for a module's file, compressed or not, at the beginning of a line: the rest are its
// dependencies.
func hasModule(list, name string) bool {
	for line := range strings.Lines(list) {
		file, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		base, _, _ := strings.Cut(file[strings.LastIndex(file, "/")+1:], ".ko")
		if strings.ReplaceAll(base, "-", "_") == name {
			return true
		}
	}
	return false
}

func hasLine(text, wanted string) bool {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == wanted {
			return true
		}
	}
	return false
}

// ModuleProblems lists, in one sentence each, the missing modules without which a mesh with this network cannot
// run.
func (m Machine) ModuleProblems(podNetwork, serviceProxy string) (problems []string) {
	for _, one := range modules {
		if one.vital && one.needed(podNetwork, serviceProxy) && m.Modules[one.name] == ModuleMissing {
			problems = append(problems, one.missing()+", and nothing stands in for it")
		}
	}
	return problems
}

func (m module) missing() string {
	return fmt.Sprintf("the kernel has no module %s, which %s needs: install the kernel's package of further modules, "+
		"or a kernel with CONFIG_%s", m.name, m.use, m.option)
}

// ModuleWarnings lists, in one sentence each, what a mesh with this network lacks, and what is unknown.
func (m Machine) ModuleWarnings(podNetwork, serviceProxy string) (warnings []string) {
	var unknown, loadable []string
	for _, one := range modules {
		if !one.needed(podNetwork, serviceProxy) {
			continue
		}
		switch state := m.Modules[one.name]; {
		case state == ModuleMissing && !one.vital:
			warnings = append(warnings, one.missing())
		case state == ModuleUnknown:
			unknown = append(unknown, one.name)
		case state == ModuleLoadable:
			loadable = append(loadable, one.name)
		}
	}
	if len(loadable) > 0 && !m.Modprobe {
		warnings = append(warnings, fmt.Sprintf("there is no /sbin/modprobe to load %s: install kmod",
			strings.Join(loadable, ", ")))
	}
	if len(unknown) > 0 {
		warnings = append(warnings, fmt.Sprintf("whether the kernel has %s cannot be told, as it has no list of its "+
			"modules: if the kernel was updated since the machine was started, start that again",
			strings.Join(unknown, ", ")))
	}
	return warnings
}
