// Package kinds lists the types of volume that a node can serve. A new type is one more line here.
package kinds

import (
	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/claim"
	"keelson.dev/services/nodeagent/internal/volume/configmap"
	"keelson.dev/services/nodeagent/internal/volume/downwardapi"
	"keelson.dev/services/nodeagent/internal/volume/emptydir"
	"keelson.dev/services/nodeagent/internal/volume/hostpath"
	"keelson.dev/services/nodeagent/internal/volume/projected"
	"keelson.dev/services/nodeagent/internal/volume/secret"
)

// All returns every type, for volume.NewHost.
func All(mounter volume.Mounter, sources volume.Sources, claims claim.Kind) []volume.Kind {
	return []volume.Kind{
		emptydir.Kind{Mounter: mounter},
		hostpath.Kind{},
		configmap.Kind{Sources: sources},
		secret.Kind{Sources: sources, Mounter: mounter},
		downwardapi.Kind{Mounter: mounter},
		projected.Kind{Sources: sources, Mounter: mounter},
		claims,
	}
}
