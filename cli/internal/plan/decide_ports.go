package plan

import (
	"errors"
	"fmt"
)

// The first ports that are tried. The apiserver and the nodeagents get the numbers that users of the field expect;
// status addresses begin at a place of the mesh's own, so that meshes that start together do not race for the same
// ones.
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
	// Name is the key under which the port is remembered, for example "apiserver" or "scheduler.status".
	Name string
	// First is where the search begins.
	First int
	// Fixed is set where the user named the port: no other will do.
	Fixed bool
	// Expected is set where clients beyond this machine expect the port: a new data directory takes no other.
	Expected bool
}

// PortsInput is what choosing the ports depends on.
type PortsInput struct {
	Needs []PortNeed
	// Remembered are the ports of an earlier run. They are kept: clients and kubeconfig files know them.
	Remembered map[string]int
	// Running names the needs whose process runs and holds its port.
	Running map[string]bool
	// Free tells whether nothing listens on a port. It must answer the same for the same port.
	Free func(port int) bool
}

// PortTakenError says that a port that cannot be changed is another's.
type PortTakenError struct {
	Name string
	Port int
	// Flag is set where the user chose the port, Expected where it was not used before.
	Flag, Expected bool
}

// Error is one line that says what to do.
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

// DecidePorts gives every need its port, or says of each that cannot have one why.
func DecidePorts(in PortsInput) (map[string]int, error) {
	ports := map[string]int{}
	used := map[int]bool{}
	for _, port := range in.Remembered {
		used[port] = true
	}
	var failed error
	for _, need := range in.Needs {
		port, err := in.decide(need, used)
		failed = errors.Join(failed, err)
		used[port] = true
		ports[need.Name] = port
	}
	if failed != nil {
		return nil, failed
	}
	return ports, nil
}

// decide gives one need its port; those that are used are others'.
func (in PortsInput) decide(need PortNeed, used map[int]bool) (int, error) {
	port, remembered := in.Remembered[need.Name]
	switch {
	case remembered && (!need.Fixed || need.First == port):
		if !in.Running[need.Name] && !in.Free(port) {
			return 0, &PortTakenError{Name: need.Name, Port: port}
		}
	case remembered:
		return 0, fmt.Errorf(
			"--port: this data directory has used %d for %s, and its clients know that: leave the flag out", port,
			need.Name)
	case need.Fixed || need.Expected:
		if port = need.First; used[port] || !in.Free(port) {
			return 0, &PortTakenError{Name: need.Name, Port: port, Flag: need.Fixed, Expected: need.Expected}
		}
	default:
		if port = search(need.First, used, in.Free); port == 0 {
			return 0, fmt.Errorf("finding a port for %s: none of %d to %d is free", need.Name, need.First,
				need.First+portTries-1)
		}
	}
	return port, nil
}

func search(first int, used map[int]bool, free func(int) bool) int {
	for port := first; port < first+portTries; port++ {
		if !used[port] && free(port) {
			return port
		}
	}
	return 0
}

// NeedsInput is what the ports of a mesh depend on.
type NeedsInput struct {
	Layout Layout
	Nodes  []string
	// APIServer is the port that the user named for it; 0 without one.
	APIServer int
	// Expected is set where clients beyond this machine are to find apiserver and nodeagent.
	Expected bool
}

// PortNeeds lists the ports of a mesh.
func PortNeeds(in NeedsInput) []PortNeed {
	apiserver := PortNeed{Name: APIServer, First: apiserverPort, Expected: in.Expected}
	if in.APIServer != 0 {
		apiserver.First, apiserver.Fixed = in.APIServer, true
	}
	needs := []PortNeed{apiserver}
	status := statusPort + int(hexNumber(in.Layout.ID())%statusSpread)
	for _, daemon := range controlPlane {
		needs = append(needs, PortNeed{Name: StatusPort(daemon), First: status})
	}
	for _, node := range in.Nodes {
		agent := NodeagentProcess(node)
		needs = append(needs, PortNeed{Name: agent, First: nodePort, Expected: in.Expected},
			PortNeed{Name: StatusPort(agent), First: status},
			PortNeed{Name: HealthPort(agent), First: healthPort, Expected: in.Expected},
			PortNeed{Name: StreamPort(ContainerdProcess(node)), First: status})
	}
	return needs
}

// StatusPort is the key of a process's status address.
func StatusPort(process string) string { return process + ".status" }

// HealthPort is the key of the port at which load balancers ask a nodeagent.
func HealthPort(process string) string { return process + ".health" }

// StreamPort is the key of the port at which a containerd is asked for the streams of exec, attach and port-forward.
func StreamPort(process string) string { return process + ".stream" }

func hexNumber(id string) uint64 {
	var number uint64
	for _, digit := range []byte(id) {
		number = number<<4 | uint64(digit&0xf) + uint64(digit>>6)*9
	}
	return number
}
