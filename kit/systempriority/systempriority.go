// Package systempriority has the priorities of the system's classes, which every mesh has. Kubernetes fixes both;
// users' own classes lie below.
package systempriority

// The classes of what a node, and what the mesh, cannot do without.
const (
	NodeCriticalClass    = "system-node-critical"
	ClusterCriticalClass = "system-cluster-critical"
)

// Their values.
const (
	NodeCritical    int32 = 2000001000
	ClusterCritical int32 = 2000000000
)

// Of returns the value of a class by its name; false for any but the system's.
func Of(class string) (value int32, found bool) {
	switch class {
	case NodeCriticalClass:
		return NodeCritical, true
	case ClusterCriticalClass:
		return ClusterCritical, true
	}
	return 0, false
}
