package csivolume

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/podview"
	"keelson.dev/kit/volumename"
	"keelson.dev/services/nodeagent/internal/csiplugin"
)

// Source is a volume of a driver for a Pod.
type Source struct {
	Pod *corev1.Pod
	// Name is the name of the PersistentVolume, or of an inline volume in its Pod.
	Name           string
	Driver, Handle string
	// Claim is the name of the Pod's claim; empty for an inline volume.
	Claim string
	// Inline volumes live as long as their Pod and are created by publishing them.
	Inline bool
	// Block means that containers get the volume as a block device.
	Block bool
	// ReadOnly means that no container of the Pod may write to it.
	ReadOnly     bool
	FSType       string
	MountOptions []string
	Attributes   map[string]string
	AccessModes  []corev1.PersistentVolumeAccessMode
	// Single means that no other Pod may use the volume.
	Single bool
	// The Secrets are only for the driver; nil for none.
	StageSecret, PublishSecret, ExpandSecret *corev1.SecretReference
	// Size is what the claim says that the volume has, in bytes; 0 if it does not say. Growing means that it may have
	// to grow before the Pod gets it.
	Size    int64
	Growing bool
}

func (s Source) id() volumeID { return volumeID{s.Driver, s.Handle} }
func (s Source) at() place    { return place{s.Pod.UID, s.Name} }

// OfVolume returns the source of a PersistentVolume, which has a driver, that a volume of the Pod shows.
func OfVolume(pod *corev1.Pod, volume *corev1.Volume, pv *corev1.PersistentVolume) Source {
	spec := pv.Spec.CSI
	return Source{
		Pod: pod, Name: pv.Name, Driver: spec.Driver, Handle: spec.VolumeHandle, Claim: podview.ClaimName(pod, volume),
		Block:    IsBlock(pv),
		ReadOnly: spec.ReadOnly || onlyReads(pod, volume.PersistentVolumeClaim), FSType: spec.FSType,
		MountOptions: pv.Spec.MountOptions, Attributes: spec.VolumeAttributes, AccessModes: pv.Spec.AccessModes,
		Single:      slices.Contains(pv.Spec.AccessModes, corev1.ReadWriteOncePod),
		StageSecret: spec.NodeStageSecretRef, PublishSecret: spec.NodePublishSecretRef,
		ExpandSecret: spec.NodeExpandSecretRef,
	}
}

// IsBlock reports whether containers get a volume as a block device.
func IsBlock(pv *corev1.PersistentVolume) bool {
	return ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeBlock
}

// WithClaim adds what the volume's claim says.
func (s Source) WithClaim(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) Source {
	s.Size = sizeOf(claim)
	s.Growing = !s.ReadOnly && growing(claim, pv, s.Size) != nil
	return s
}

// onlyReads reports whether every volume of the Pod that uses the claim is read-only: they share one mount.
func onlyReads(pod *corev1.Pod, claim *corev1.PersistentVolumeClaimVolumeSource) bool {
	return claim != nil && !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		other := v.PersistentVolumeClaim
		return other != nil && other.ClaimName == claim.ClaimName && !other.ReadOnly
	})
}

// OfPod returns the source of an inline volume of the Pod.
func OfPod(pod *corev1.Pod, volume *corev1.Volume) Source {
	spec := volume.CSI
	source := Source{
		Pod: pod, Name: volume.Name, Driver: spec.Driver, Inline: true, ReadOnly: ptr.Deref(spec.ReadOnly, false),
		Handle: "csi-" + hash(string(pod.UID)+volume.Name), FSType: ptr.Deref(spec.FSType, ""),
		Attributes:  spec.VolumeAttributes,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
	}
	if spec.NodePublishSecretRef != nil {
		source.PublishSecret = &corev1.SecretReference{Namespace: pod.Namespace, Name: spec.NodePublishSecretRef.Name}
	}
	return source
}

// check returns why a Pod cannot have the volume. Driver and name become parts of paths. driver is nil if the
// driver has no object.
func check(s Source, driver *storagev1.CSIDriver) error {
	if problems := fieldcheck.DriverName(s.Driver); len(problems) > 0 {
		return fmt.Errorf("the name %q of the CSI driver is invalid: %s", s.Driver, strings.Join(problems, "; "))
	}
	if s.Name == "" || s.Name != filepath.Base(s.Name) || strings.HasPrefix(s.Name, ".") {
		return fmt.Errorf("the name %q of the volume is no name of a folder", s.Name)
	}
	if s.Handle == "" {
		return fmt.Errorf("volume %s names no volumeHandle: it must", s.Name)
	}
	mode := storagev1.VolumeLifecyclePersistent
	modes := []storagev1.VolumeLifecycleMode{mode}
	if s.Inline {
		mode = storagev1.VolumeLifecycleEphemeral
	}
	if driver != nil && len(driver.Spec.VolumeLifecycleModes) > 0 {
		modes = driver.Spec.VolumeLifecycleModes
	}
	if !slices.Contains(modes, mode) {
		return fmt.Errorf("volume mode %q not supported by driver %s (only supports %q)", mode, s.Driver, modes)
	}
	if driver != nil && len(driver.Spec.TokenRequests) > 0 {
		return fmt.Errorf("spec.tokenRequests of CSIDriver %s asks for tokens of service accounts, which this node "+
			"does not hand to drivers: it must be empty", s.Driver)
	}
	return nil
}

// attachment returns the name of the VolumeAttachment that the volume needs on the node; empty if it needs none.
func attachment(s Source, driver *storagev1.CSIDriver, node string) string {
	if s.Inline || driver != nil && !ptr.Deref(driver.Spec.AttachRequired, true) {
		return ""
	}
	return volumename.Attachment(s.Driver, s.Handle, node)
}

// checkAttachment returns why a VolumeAttachment does not allow the volume to be used on the node.
func checkAttachment(s Source, node string, found *storagev1.VolumeAttachment) error {
	switch pv := found.Spec.Source.PersistentVolumeName; {
	case found.Spec.NodeName != node || found.Spec.Attacher != s.Driver || ptr.Deref(pv, "") != s.Name:
		return fmt.Errorf("volumeattachment %s is of volume %s of driver %s on node %s, not of volume %s of driver %s "+
			"on node %s", found.Name, ptr.Deref(pv, ""), found.Spec.Attacher, found.Spec.NodeName, s.Name, s.Driver,
			node)
	case !found.Status.Attached || found.DeletionTimestamp != nil:
		return fmt.Errorf("volumeattachment %s does not say that volume %s is attached", found.Name, s.Name)
	}
	return nil
}

// call is what the driver's calls for one volume are built from.
type call struct {
	Source
	driver *storagev1.CSIDriver
	can    csiplugin.Capabilities
	// staging and target are the paths.
	staging, target              string
	publishContext               map[string]string
	stageSecrets, publishSecrets map[string]string
	expandSecrets                map[string]string
}

// stages reports whether the volume is staged before it is published.
func (c call) stages() bool { return c.can.Stage && !c.Inline }

func (c call) stageRequest() *csi.NodeStageVolumeRequest {
	return &csi.NodeStageVolumeRequest{
		VolumeId: c.Handle, PublishContext: c.publishContext, StagingTargetPath: c.staging,
		VolumeCapability: c.capability(), Secrets: c.stageSecrets, VolumeContext: c.Attributes,
	}
}

func (c call) publishRequest() *csi.NodePublishVolumeRequest {
	request := &csi.NodePublishVolumeRequest{
		VolumeId: c.Handle, PublishContext: c.publishContext, TargetPath: c.target, VolumeCapability: c.capability(),
		Readonly: c.ReadOnly, Secrets: c.publishSecrets, VolumeContext: c.volumeContext(),
	}
	if c.stages() {
		request.StagingTargetPath = c.staging
	}
	return request
}

// expandRequest asks for the growth of a volume that is staged or published at a path.
func (c call) expandRequest(path string, to resource.Quantity) *csi.NodeExpandVolumeRequest {
	request := &csi.NodeExpandVolumeRequest{
		VolumeId: c.Handle, VolumePath: path, CapacityRange: &csi.CapacityRange{RequiredBytes: bytesOf(to)},
		VolumeCapability: c.capability(), Secrets: c.expandSecrets,
	}
	if c.stages() {
		request.StagingTargetPath = c.staging
	}
	return request
}

// volumeContext returns what the driver gets about the volume and, if its object requests it, about the Pod.
func (c call) volumeContext() map[string]string {
	if c.driver == nil || !ptr.Deref(c.driver.Spec.PodInfoOnMount, false) {
		return c.Attributes
	}
	out := maps.Clone(c.Attributes)
	if out == nil {
		out = map[string]string{}
	}
	const prefix = "csi.storage.k8s.io/"
	out[prefix+"pod.name"] = c.Pod.Name
	out[prefix+"pod.namespace"] = c.Pod.Namespace
	out[prefix+"pod.uid"] = string(c.Pod.UID)
	out[prefix+"serviceAccount.name"] = c.Pod.Spec.ServiceAccountName
	out[prefix+"ephemeral"] = strconv.FormatBool(c.Inline)
	return out
}

func (c call) capability() *csi.VolumeCapability {
	mode := &csi.VolumeCapability_AccessMode{Mode: accessMode(c.AccessModes, c.can.SingleWriters)}
	if c.Block {
		return &csi.VolumeCapability{AccessMode: mode,
			AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}
	}
	mount := &csi.VolumeCapability_MountVolume{FsType: c.FSType, MountFlags: c.MountOptions}
	if group := c.group(); group >= 0 && c.can.MountGroup {
		mount.VolumeMountGroup = strconv.FormatInt(group, 10)
	}
	return &csi.VolumeCapability{AccessMode: mode, AccessType: &csi.VolumeCapability_Mount{Mount: mount}}
}

// accessMode returns the driver's constant for the first access mode of the volume.
func accessMode(modes []corev1.PersistentVolumeAccessMode, single bool) csi.VolumeCapability_AccessMode_Mode {
	if len(modes) == 0 {
		return csi.VolumeCapability_AccessMode_UNKNOWN
	}
	switch modes[0] {
	case corev1.ReadWriteOnce:
		if single {
			return csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
		}
		return csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	case corev1.ReadWriteOncePod:
		if single {
			return csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
		}
		return csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	case corev1.ReadOnlyMany:
		return csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case corev1.ReadWriteMany:
		return csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	}
	return csi.VolumeCapability_AccessMode_UNKNOWN
}

// group returns the group for the volume; -1 for none.
func (c call) group() int64 {
	security := c.Pod.Spec.SecurityContext
	if security == nil || security.FSGroup == nil || c.ReadOnly || c.Block {
		return -1
	}
	policy := storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy
	if c.driver != nil && c.driver.Spec.FSGroupPolicy != nil {
		policy = *c.driver.Spec.FSGroupPolicy
	}
	once := slices.Contains(c.AccessModes, corev1.ReadWriteOnce) ||
		slices.Contains(c.AccessModes, corev1.ReadWriteOncePod)
	switch {
	case policy == storagev1.NoneFSGroupPolicy,
		policy == storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy && (c.FSType == "" || !once):
		return -1
	}
	return *security.FSGroup
}

// patience is how long a Pod's end waits for a driver to unpublish its volume.
const patience = 2 * time.Minute

// letGo reports whether a Pod's end no longer waits for the driver, whose calls have failed since that time.
func letGo(since, now time.Time) bool { return now.Sub(since) >= patience }
