package claim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"

	names "keelson.dev/kit/localvolume"
	"keelson.dev/services/nodeagent/internal/csivolume"
	"keelson.dev/services/nodeagent/internal/localvolume"
)

// input is all that determines what a Pod gets for a claim.
type input struct {
	Pod    *corev1.Pod
	Volume *corev1.Volume
	Claim  *corev1.PersistentVolumeClaim
	// PV is nil until the claim is known to be bound.
	PV         *corev1.PersistentVolume
	NodeName   string
	NodeLabels map[string]string
}

// checkClaim returns why a Pod cannot use the claim.
func checkClaim(in input) error {
	claim := in.Claim
	switch {
	case in.Volume.Ephemeral != nil && !metav1.IsControlledBy(claim, in.Pod):
		return fmt.Errorf("persistentvolumeclaim %q was not created for this pod: it must be owned by it", claim.Name)
	case claim.DeletionTimestamp != nil:
		return fmt.Errorf("persistentvolumeclaim %q is being deleted: no new pod can use it", claim.Name)
	case claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "":
		return fmt.Errorf("persistentvolumeclaim %q is not bound: its phase is %s, it must be Bound", claim.Name,
			claim.Status.Phase)
	}
	return nil
}

// uses reports whether containers mount the volume, and whether they use it as a device.
func uses(pod *corev1.Pod, volume string) (mounts, devices bool) {
	add := func(m []corev1.VolumeMount, d []corev1.VolumeDevice) {
		mounts = mounts || slices.ContainsFunc(m, func(m corev1.VolumeMount) bool { return m.Name == volume })
		devices = devices || slices.ContainsFunc(d, func(d corev1.VolumeDevice) bool { return d.Name == volume })
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		add(c.VolumeMounts, c.VolumeDevices)
	}
	for i := range pod.Spec.EphemeralContainers {
		add(pod.Spec.EphemeralContainers[i].VolumeMounts, pod.Spec.EphemeralContainers[i].VolumeDevices)
	}
	return mounts, devices
}

// checkMode returns why the containers of a Pod cannot use a volume in the way that they name it.
func checkMode(in input) error {
	mounts, devices := uses(in.Pod, in.Volume.Name)
	pv := in.PV
	switch mode := ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem); {
	case mode == corev1.PersistentVolumeFilesystem && devices:
		return fmt.Errorf("volume %s has volumeMode %s, but is specified in volumeDevices", in.Volume.Name, mode)
	case mode == corev1.PersistentVolumeFilesystem:
		return nil
	case mode != corev1.PersistentVolumeBlock || pv.Spec.CSI == nil || pv.Spec.CSI.Driver == names.Driver:
		return fmt.Errorf("volumeMode %s of PersistentVolume %s is not supported by this node: it must be Filesystem, "+
			"or Block with a CSI driver", mode, pv.Name)
	case mounts:
		return fmt.Errorf("volume %s has volumeMode %s, but is specified in volumeMounts", in.Volume.Name, mode)
	}
	return nil
}

// checkVolume returns why a Pod cannot use the PersistentVolume of its claim.
func checkVolume(in input) error {
	pv := in.PV
	if ref := pv.Spec.ClaimRef; ref == nil || ref.UID != in.Claim.UID {
		return fmt.Errorf("persistentvolume %q is not bound to persistentvolumeclaim %q", pv.Name, in.Claim.Name)
	}
	if err := checkMode(in); err != nil {
		return err
	}
	if affinity := pv.Spec.NodeAffinity; affinity != nil && affinity.Required != nil {
		selector, err := nodeaffinity.NewNodeSelector(affinity.Required)
		if err != nil {
			return fmt.Errorf("spec.nodeAffinity of PersistentVolume %s: %w", pv.Name, err)
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: in.NodeName, Labels: in.NodeLabels}}
		if !selector.Match(node) {
			return fmt.Errorf("spec.nodeAffinity of PersistentVolume %s does not allow node %s", pv.Name, in.NodeName)
		}
	}
	return nil
}

// plan returns the Pod's use of the volume.
func plan(in input) (localvolume.Use, error) {
	if err := checkVolume(in); err != nil {
		return localvolume.Use{}, err
	}
	pv, source := in.PV, in.Volume.PersistentVolumeClaim
	use := localvolume.Use{
		Claim: in.Claim.Namespace + "/" + in.Claim.Name, Volume: pv.Name, ReadOnly: source != nil && source.ReadOnly,
		Single: slices.Contains(in.Claim.Spec.AccessModes, corev1.ReadWriteOncePod) ||
			slices.Contains(pv.Spec.AccessModes, corev1.ReadWriteOncePod),
	}
	switch spec := pv.Spec; {
	case spec.CSI != nil && spec.CSI.Driver == names.Driver:
		if err := localvolume.Check(pv, in.NodeName); err != nil {
			return localvolume.Use{}, err
		}
		use.Handle, use.Shared = spec.CSI.VolumeHandle, true
		use.ReadOnly = use.ReadOnly || spec.CSI.ReadOnly
	case spec.CSI != nil:
		use.Driver, use.ReadOnly = spec.CSI.Driver, use.ReadOnly || spec.CSI.ReadOnly
		use.Block = csivolume.IsBlock(pv)
	case spec.Local != nil:
		use.Path, use.Shared = spec.Local.Path, true
	case spec.HostPath != nil:
		use.Path = spec.HostPath.Path
	default:
		return localvolume.Use{}, fmt.Errorf("volume source %s of PersistentVolume %s is not supported by this node: "+
			"use local, hostPath or csi", sourceName(pv), pv.Name)
	}
	return use, nil
}

// sourceName returns the field name of a PersistentVolume's source.
func sourceName(pv *corev1.PersistentVolume) string {
	value := reflect.ValueOf(pv.Spec.PersistentVolumeSource)
	for i := range value.NumField() {
		if field := value.Field(i); field.Kind() == reflect.Pointer && !field.IsNil() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return "(none)"
}
