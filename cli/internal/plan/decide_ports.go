package plan

import "fmt"

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
	// Flag is set where the user chose the port.
	Flag bool
}

// Error is one line that says what to do.
func (e *PortTakenError) Error() string {
	if e.Flag {
		return fmt.Sprintf("--port: port %d is taken by another process: end it or choose another port", e.Port)
	}
	return fmt.Sprintf("port %d, which this data directory has used for %s, is taken by another process: end it first",
		e.Port, e.Name)
}

// DecidePorts gives every need its port.
func DecidePorts(in PortsInput) (map[string]int, error) {
	ports := map[string]int{}
	used := map[int]bool{}
	for _, port := range in.Remembered {
		used[port] = true
	}
	for _, need := range in.Needs {
		port, remembered := in.Remembered[need.Name]
		switch {
		case remembered && (!need.Fixed || need.First == port):
			if !in.Running[need.Name] && !in.Free(port) {
				return nil, &PortTakenError{Name: need.Name, Port: port}
			}
		case remembered:
			return nil,
				fmt.Errorf(
					"--port: this data directory has used %d for %s, and its clients know that: leave the flag out",
					port, need.Name)
		case need.Fixed:
			if port = need.First; used[port] || !in.Free(port) {
				return nil, &PortTakenError{Name: need.Name, Port: port, Flag: true}
			}
		default:
			if port = search(need.First, used, in.Free); port == 0 {
				return nil, fmt.Errorf("finding a port for %s: none of %d to %d is free", need.Name, need.First,
					need.First+portTries-1)
			}
		}
		used[port] = true
		ports[need.Name] = port
	}
	return ports, nil
}

func search(first int, used map[int]bool, free func(int) bool) int {
	for port := first; port < first+portTries; port++ {
		if !used[port] && free(port) {
			return port
		}
	}
	return 0
}

// PortNeeds lists the ports of a mesh. A port from the user, other than 0, is the apiserver's.
func PortNeeds(layout Layout, nodes, userPort int) []PortNeed {
	apiserver := PortNeed{Name: APIServer, First: apiserverPort}
	if userPort != 0 {
		apiserver.First, apiserver.Fixed = userPort, true
	}
	needs := []PortNeed{apiserver}
	status := statusPort + int(hexNumber(layout.ID())%statusSpread)
	for _, daemon := range controlPlane {
		needs = append(needs, PortNeed{Name: StatusPort(daemon), First: status})
	}
	for i := range nodes {
		agent := NodeagentProcess(NodeName(i))
		needs = append(needs, PortNeed{Name: agent, First: nodePort}, PortNeed{Name: StatusPort(agent), First: status},
			PortNeed{Name: HealthPort(agent), First: healthPort})
	}
	return needs
}

// StatusPort is the key of a process's status address.
func StatusPort(process string) string { return process + ".status" }

// HealthPort is the key of the port at which load balancers ask a nodeagent.
func HealthPort(process string) string { return process + ".health" }

func hexNumber(id string) uint64 {
	var number uint64
	for _, digit := range []byte(id) {
		number = number<<4 | uint64(digit&0xf) + uint64(digit>>6)*9
	}
	return number
}
