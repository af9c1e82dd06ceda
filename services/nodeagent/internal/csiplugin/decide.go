package csiplugin

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/apimachinery/pkg/util/validation"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/services/nodeagent/internal/pluginsocket"
)

// maxNodeIDBytes is the maximum length of a driver's name for a node (CSINode, spec.drivers[*].nodeID).
const maxNodeIDBytes = 256

// Identity is what a driver reports about itself and this node.
type Identity struct {
	// Name is the driver's, NodeID its name for this node.
	Name, NodeID string
	// Topology is the driver's topology of the node: the Node's labels.
	Topology map[string]string
	// MaxVolumes is how many volumes may be attached to the node; 0 means any number.
	MaxVolumes int32
}

// TopologyKeys returns the sorted keys of the topology.
func (i Identity) TopologyKeys() []string { return slices.Sorted(maps.Keys(i.Topology)) }

// Capabilities are the optional calls and features of a driver.
type Capabilities struct {
	// Stage means that volumes are staged once per node before they are published to Pods.
	Stage bool
	// SingleWriters means that the access modes for one node distinguish one writer from several.
	SingleWriters bool
	// MountGroup means that the driver itself changes volumes' group to a Pod's.
	MountGroup bool
	// Stats means that the driver says how full a volume is, Condition that it also says whether it is in order.
	Stats, Condition bool
	// Expand means that a volume that has grown in the storage has to grow on the node, too.
	Expand bool
}

// checkInfo returns why a plugin cannot be a driver of this node; others are the other plugin types that the node
// accepts.
func checkInfo(info *registration.PluginInfo, others ...string) error {
	if info.GetType() != registration.CSIPlugin {
		return fmt.Errorf("plugins of type %q are not supported by this node: the type must be %s",
			pluginsocket.Clip(info.GetType()),
			strings.Join(append([]string{registration.CSIPlugin}, others...), " or "))
	}
	if problems := fieldcheck.DriverName(info.GetName()); len(problems) > 0 {
		return fmt.Errorf("the driver's name %q is invalid: %s", pluginsocket.Clip(info.GetName()),
			strings.Join(problems, "; "))
	}
	supported := slices.ContainsFunc(info.GetSupportedVersions(), func(version string) bool {
		major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
		return major == "1"
	})
	if !supported {
		return fmt.Errorf("driver %s speaks none of the versions of CSI that this node does: 1.x", info.GetName())
	}
	return nil
}

// identify reads a driver's report about the node, and returns an error if it is invalid.
func identify(name string, info *csi.NodeGetInfoResponse) (Identity, error) {
	id := info.GetNodeId()
	switch {
	case id == "":
		return Identity{}, fmt.Errorf("driver %s says no node_id: it must say one", name)
	case len(id) > maxNodeIDBytes:
		return Identity{}, fmt.Errorf("driver %s says a node_id of %d bytes: at most %d are allowed", name, len(id),
			maxNodeIDBytes)
	case info.GetMaxVolumesPerNode() < 0:
		return Identity{}, fmt.Errorf("driver %s says max_volumes_per_node %d: it must be 0 or more", name,
			info.GetMaxVolumesPerNode())
	}
	topology := info.GetAccessibleTopology().GetSegments()
	for key, value := range topology {
		problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
		if len(problems) > 0 {
			return Identity{}, fmt.Errorf("driver %s says the topology segment %q=%q, which cannot be a label: %s",
				name, pluginsocket.Clip(key), pluginsocket.Clip(value), strings.Join(problems, "; "))
		}
	}
	return Identity{Name: name, NodeID: id, Topology: maps.Clone(topology),
		MaxVolumes: int32(min(info.GetMaxVolumesPerNode(), math.MaxInt32))}, nil
}

// capable reads the capabilities of a driver; it leaves out those that this node does not use.
func capable(response *csi.NodeGetCapabilitiesResponse) Capabilities {
	var out Capabilities
	for _, capability := range response.GetCapabilities() {
		switch capability.GetRpc().GetType() {
		case csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME:
			out.Stage = true
		case csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER:
			out.SingleWriters = true
		case csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP:
			out.MountGroup = true
		case csi.NodeServiceCapability_RPC_GET_VOLUME_STATS:
			out.Stats = true
		case csi.NodeServiceCapability_RPC_VOLUME_CONDITION:
			out.Condition = true
		case csi.NodeServiceCapability_RPC_EXPAND_VOLUME:
			out.Expand = true
		}
	}
	return out
}
