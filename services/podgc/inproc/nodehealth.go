package inproc

import "keelson.dev/services/podgc/internal/collectors/nodehealth"

// NodeHealth says how patient podgc is with nodes.
type NodeHealth = nodehealth.Settings

// DefaultNodeHealth is how patient it is unless it is told otherwise.
func DefaultNodeHealth() NodeHealth { return nodehealth.DefaultSettings() }
