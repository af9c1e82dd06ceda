package plan

import (
	"errors"
	"fmt"
	"slices"
)

// The first ports that are tried. The apiserver and the nodeagents get the conventional ports; the status ports of
// each mesh begin at a different number, so that meshes that start together do not race for the same ones.
const (
	apiserverPort = 6443
	nodePort      = 10250
	healthPort    = 10256
	statusPort    = 20000
	statusSpread  = 8000
	portTries     = 500
)

// PortNeed is one port that the mesh needs.
type PortNeed struct {
	// Name is the key under which keel records the port, for example "apiserver" or "scheduler.status".
	Name string
	// First is the port at which the search begins.
	First int
	// Fixed is set if the user chose the port: no other will do.
	Fixed bool
	// Expected is set if clients on other machines expect the port: a new data directory takes no other.
	Expected bool
	// Node is the node in whose network namespace the port is; empty for the machine's own namespace.
	Node string
}

// PortsInput holds what DecidePorts decides from.
type PortsInput struct {
	Needs []PortNeed
	// Remembered are the ports of an earlier run. They are kept, because clients and kubeconfig files name them.
	Remembered map[string]int
	// Running names the needs whose process runs and holds its port.
	Running map[string]bool
	// Free reports whether nothing listens on a port in the network namespace of a node, or in the machine's own.
	// It must return the same result for the same port.
	Free func(node string, port int) bool
}

// place is a port in a network namespace: each namespace has its own ports.
type place struct {
	node string
	port int
}

// PortTakenError says that another process has a port that cannot be changed.
type PortTakenError struct {
	Name string
	Port int
	// Flag is set if the user chose the port, Expected if clients on other machines expect it and it was not used
	// before.
	Flag, Expected bool
}

// Error returns one line that says what to do.
func (e *PortTakenError) Error() string {
	switch {
	case e.Flag:
		return fmt.Sprintf("--port: port %d is taken by another process: end it or choose another port", e.Port)
	case e.Expected && e.Name == APIServer:
		return fmt.Sprintf("port %d, which clients expect of an apiserver, is taken by another process: end it or "+
			"choose another port by --port", e.Port)
	case e.Expected:
		return fmt.Sprintf("port %d, which %s needs, is taken by another process: end it first", e.Port, e.Name)
	}
	return fmt.Sprintf("port %d, which this data directory has used for %s, is taken by another process: end it first",
		e.Port, e.Name)
}

// DecidePorts returns a port for every need, or an error that explains each need without one.
func DecidePorts(in PortsInput) (map[string]int, error) {
	ports := map[string]int{}
	used := map[place]bool{}
	for name, port := range in.Remembered {
		used[place{in.nodeOf(name), port}] = true
	}
	var failed error
	for _, need := range in.Needs {
		port, err := in.decide(need, used)
		failed = errors.Join(failed, err)
		used[place{need.Node, port}] = true
		ports[need.Name] = port
	}
	if failed != nil {
		return nil, failed
	}
	return ports, nil
}

// nodeOf returns the node that has the port of that name. A port that is no longer needed is taken to be the
// machine's.
func (in PortsInput) nodeOf(name string) string {
	i := slices.IndexFunc(in.Needs, func(need PortNeed) bool { return need.Name == name })
	if i < 0 {
		return ""
	}
	return in.Needs[i].Node
}

// decide returns the port for one need; used are the ports of other needs.
func (in PortsInput) decide(need PortNeed, used map[place]bool) (int, error) {
	free := func(port int) bool { return in.Free(need.Node, port) }
	port, remembered := in.Remembered[need.Name]
	switch {
	case remembered && (!need.Fixed || need.First == port):
		if !in.Running[need.Name] && !free(port) {
			return 0, &PortTakenError{Name: need.Name, Port: port}
		}
	case remembered:
		return 0, fmt.Errorf(
			"--port: this data directory has used %d for %s, and its clients know that: leave the flag out", port,
			need.Name)
	case need.Fixed || need.Expected:
		if port = need.First; used[place{need.Node, port}] || !free(port) {
			return 0, &PortTakenError{Name: need.Name, Port: port, Flag: need.Fixed, Expected: need.Expected}
		}
	default:
		unused := func(port int) bool { return !used[place{need.Node, port}] && free(port) }
		if port = search(need.First, unused); port == 0 {
			return 0, fmt.Errorf("finding a port for %s: none of %d to %d is free", need.Name, need.First,
				need.First+portTries-1)
		}
	}
	return port, nil
}

func search(first int, unused func(int) bool) int {
	for port := first; port < first+portTries; port++ {
		if unused(port) {
			return port
		}
	}
	return 0
}

// NeedsInput holds what the list of ports of a mesh depends on.
type NeedsInput struct {
	Layout Layout
	// Nodes are the nodes' names; the first is the machine itself.
	Nodes []string
	// APIServer is the port that the user chose for the apiserver; 0 without one.
	APIServer int
	// Expected is set if clients on other machines must find apiserver and nodeagent at their conventional ports.
	Expected bool
	// Worker is set if the machine runs a node and no control plane.
	Worker bool
}

// PortNeeds lists the ports of a mesh.
func PortNeeds(in NeedsInput) []PortNeed {
	apiserver := PortNeed{Name: APIServer, First: apiserverPort, Expected: in.Expected}
	if in.APIServer != 0 {
		apiserver.First, apiserver.Fixed = in.APIServer, true
	}
	var needs []PortNeed
	status := statusPort + int(hexNumber(in.Layout.ID())%statusSpread)
	if !in.Worker {
		needs = append(needs, apiserver)
		for _, daemon := range controlPlane {
			needs = append(needs, PortNeed{Name: StatusPort(daemon), First: status})
		}
		if in.Expected {
			needs = append(needs, PortNeed{Name: StorePort, First: storePort})
		}
	}
	for i, node := range in.Nodes {
		agent, at := NodeagentProcess(node), node
		if i == 0 {
			at = "" // the machine itself
		}
		needs = append(needs, PortNeed{Name: agent, First: nodePort, Expected: in.Expected, Node: at},
			PortNeed{Name: StatusPort(agent), First: status, Node: at},
			PortNeed{Name: HealthPort(agent), First: healthPort, Expected: in.Expected, Node: at},
			PortNeed{Name: StreamPort(ContainerdProcess(node)), First: status, Node: at})
	}
	return needs
}

// StatusPort returns the key of the port of a process's status address.
func StatusPort(process string) string { return process + ".status" }

// HealthPort returns the key of the port at which load balancers query a nodeagent.
func HealthPort(process string) string { return process + ".health" }

// StreamPort returns the key of the port at which a containerd serves the streams of exec, attach and
// port-forward.
func StreamPort(process string) string { return process + ".stream" }

func hexNumber(id string) uint64 {
	var number uint64
	for _, digit := range []byte(id) {
		number = number<<4 | uint64(digit&0xf) + uint64(digit>>6)*9
	}
	return number
}
