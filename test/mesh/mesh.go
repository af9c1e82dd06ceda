// Package mesh is what a scenario acts on: a running Keelson, whether its daemons are goroutines of the test (package
// inprocess) or real processes with real containers (package processes).
package mesh

import (
	"testing"

	"k8s.io/client-go/rest"
)

// Daemon names one of the mesh's parts.
type Daemon string

// The daemons.
const (
	APIServer           Daemon = "apiserver"
	Scheduler           Daemon = "scheduler"
	WorkloadControllers Daemon = "workload-controllers"
	PodGC               Daemon = "podgc"
	NodeAgent           Daemon = "nodeagent"
)

// Daemons are all of them, in the order in which they start.
var Daemons = []Daemon{APIServer, Scheduler, WorkloadControllers, PodGC, NodeAgent}

// ExtensionIP is the address of the endpoint of an API server that a scenario runs on a loopback address, to which an
// apiserver does not connect. A mesh in one process has its apiserver connect there in its place.
const ExtensionIP = "192.0.2.1"

// Mesh is a running Keelson. Its methods fail the test rather than return errors.
type Mesh interface {
	// Admin is a connection with all rights.
	Admin() *rest.Config
	// Kubeconfig is a file with the same rights, for kubectl.
	Kubeconfig() string
	// Nodes are the names of its nodes.
	Nodes() []string
	// AddNode lets one more node join and returns its name.
	AddNode(t testing.TB) string
	// RealContainers reports whether Pods are real containers; else nodes only say that they run.
	RealContainers() bool
	// Kill ends a daemon as abruptly as the mesh can: by SIGKILL where it is a process. On several nodes it ends every
	// nodeagent.
	Kill(t testing.TB, d Daemon)
	// Start brings a killed daemon back, with the same arguments.
	Start(t testing.TB, d Daemon)
	// StopNode cuts a node off: its agent is gone, its containers go on.
	StopNode(t testing.TB, name string)
	// StartNode brings it back.
	StartNode(t testing.TB, name string)
}
