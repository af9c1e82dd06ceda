package upgrade

import "fmt"

// NextMachine says, after this machine, where keel upgrade is to run next: on the machines of the control plane first.
// It is what a machine with an apiserver of the version sees. Complete is set if no machine is left.
func NextMachine(fleet Fleet, version Version) (next string, complete bool) {
	for _, other := range fleet.APIServers {
		if other.Version.text != version.text {
			return fmt.Sprintf("Next: keel upgrade on %s, whose apiserver is of %s.", other.Machine,
				other.Version), false
		}
	}
	for _, agent := range fleet.Agents {
		if agent.Version.text != version.text {
			return fmt.Sprintf("Next: keel upgrade on %s, whose nodeagent is of %s.", agent.Machine,
				agent.Version), false
		}
	}
	return fmt.Sprintf("Every apiserver and every nodeagent of the mesh is of %s.", version), true
}
