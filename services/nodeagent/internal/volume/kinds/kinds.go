// Package kinds lists the types of volume that a node can serve. A new type is one more line here.
package kinds

import (
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/claim"
	"keelson.dev/services/nodeagent/internal/volume/configmap"
	"keelson.dev/services/nodeagent/internal/volume/csi"
	"keelson.dev/services/nodeagent/internal/volume/downwardapi"
	"keelson.dev/services/nodeagent/internal/volume/emptydir"
	"keelson.dev/services/nodeagent/internal/volume/hostpath"
	"keelson.dev/services/nodeagent/internal/volume/image"
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
		image.Kind{},
		claims,
		csi.Kind{Volumes: claims.Drivers},
	}
}

// Held returns the name of the kind of a volume whose contents are in its own folder of the Pod; ok is false for a
// volume that shows what is elsewhere.
func Held(v *corev1.Volume) (kind string, ok bool) {
	for _, k := range []volume.Kind{emptydir.Kind{}, configmap.Kind{}, secret.Kind{}, downwardapi.Kind{},
		projected.Kind{}} {
		if k.Handles(v) {
			return k.Name(), true
		}
	}
	return "", false
}
