// Package metrics is the group metrics.k8s.io: what nodes and Pods use. Nothing of it is stored.
package metrics

import (
	"keelson.dev/services/apiserver/internal/nodeproxy"
	"keelson.dev/services/apiserver/internal/registry/metrics/nodemetrics"
	"keelson.dev/services/apiserver/internal/registry/metrics/podmetrics"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/usage"
)

// Objects are what there is to tell about.
type Objects interface {
	podmetrics.Pods
	nodemetrics.Nodes
}

// Entries serve the group: both resources learn from the same readings.
func Entries(objects Objects, nodes *nodeproxy.Nodes) []rest.Entry {
	source := usage.NewSource(usage.FromAgents(nodes))
	return []rest.Entry{nodemetrics.Entry(objects, source), podmetrics.Entry(objects, source)}
}
