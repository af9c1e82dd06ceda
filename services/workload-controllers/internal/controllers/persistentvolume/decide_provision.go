package persistentvolume

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/localvolume"
)

// provision has the provisioner of the claim's class create a volume.
func provision(in ClaimInput) ClaimPlan {
	claim, class := in.Claim, in.Class
	switch {
	case class == nil:
		return pending(claim, provisioningFailed("storageclass.storage.k8s.io %q not found", classOf(claim)))
	case class.Provisioner == noProvisioner:
		return pending(claim, provisioningFailed("no volume of StorageClass %q suits this claim, and its provisioner "+
			"%s makes none", class.Name, noProvisioner))
	case class.Provisioner != localvolume.Driver:
		return waitForOther(claim, class.Provisioner)
	case !waitsForConsumer(class):
		return pending(claim, provisioningFailed("StorageClass %q: volumeBindingMode must be WaitForFirstConsumer for "+
			"the provisioner %s, whose volumes are on the Pod's node", class.Name, localvolume.Driver))
	}
	if why := refusal(in); why != "" {
		// Without the annotation the scheduler may choose another node.
		plan := pending(claim, provisioningFailed("%s", why))
		plan.Claim = claim.DeepCopy()
		delete(plan.Claim.Annotations, annotationNode)
		return plan
	}
	volume := localVolume(in)
	plan := bind(claim, volume)
	plan.Create = volume
	return plan
}

// waitForOther assigns the claim to an external provisioner.
func waitForOther(claim *corev1.PersistentVolumeClaim, provisioner string) ClaimPlan {
	plan := pending(claim, externalProvisioning(provisioner))
	if claim.Annotations[annotationProvisioner] == provisioner &&
		claim.Annotations[annotationProvisionerV1] == provisioner {
		return plan
	}
	plan.Claim = claim.DeepCopy()
	for _, key := range []string{annotationProvisioner, annotationProvisionerV1} {
		annotate(&plan.Claim.Annotations, key)
		plan.Claim.Annotations[key] = provisioner
	}
	return plan
}

// refusal returns why no folder on the chosen node can serve the claim, or "" if one can.
func refusal(in ClaimInput) string {
	if why := refusalAnywhere(in.Claim, in.Class); why != "" {
		return why
	}
	switch {
	case in.Node == nil:
		return fmt.Sprintf("the selected node %q is gone", in.Claim.Annotations[annotationNode])
	case in.Node.Labels[corev1.LabelHostname] == "":
		return fmt.Sprintf("the selected node %q has no label %s", in.Node.Name, corev1.LabelHostname)
	}
	return ""
}

// refusalAnywhere returns why no folder on any node can serve a claim of the class, or "" if one can.
func refusalAnywhere(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) string {
	spec := &claim.Spec
	shared := slices.IndexFunc(spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return m != corev1.ReadWriteOnce && m != corev1.ReadWriteOncePod
	})
	switch {
	case shared >= 0:
		return fmt.Sprintf("spec.accessModes[%d]: %s is not possible for a volume on one node: use ReadWriteOnce or "+
			"ReadWriteOncePod", shared, spec.AccessModes[shared])
	case mode(spec.VolumeMode) != string(corev1.PersistentVolumeFilesystem):
		return fmt.Sprintf("spec.volumeMode: %s is not possible for a folder: use Filesystem", *spec.VolumeMode)
	case spec.Selector != nil:
		return "spec.selector: a volume that is made for the claim has no labels to select it by"
	case spec.DataSource != nil || spec.DataSourceRef != nil:
		return "spec.dataSource: a volume of " + localvolume.Driver + " begins empty"
	case ptr.Deref(spec.VolumeAttributesClassName, "") != "":
		return "spec.volumeAttributesClassName: " + localvolume.Driver + " knows no attributes"
	case len(class.Parameters) > 0 || len(class.MountOptions) > 0:
		return fmt.Sprintf("StorageClass %q: %s takes neither parameters nor mountOptions", class.Name,
			localvolume.Driver)
	}
	return ""
}

// localVolume returns the claim's volume, a folder on its node. Its name depends only on the claim, so that a second
// create makes no second volume.
func localVolume(in ClaimInput) *corev1.PersistentVolume {
	claim, class := in.Claim, in.Class
	name := "pvc-" + string(claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{localvolume.NodeLabel: in.Node.Name},
			Annotations: map[string]string{annotationProvisionedBy: localvolume.Driver},
			Finalizers:  []string{protection, localvolume.FolderFinalizer},
		},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class.Name,
			Capacity:         corev1.ResourceList{corev1.ResourceStorage: sizeWanted(claim)},
			AccessModes:      slices.Clone(claim.Spec.AccessModes),
			VolumeMode:       ptr.To(corev1.PersistentVolumeFilesystem),
			ClaimRef:         reference(claim),
			PersistentVolumeReclaimPolicy: ptr.Deref(class.ReclaimPolicy,
				corev1.PersistentVolumeReclaimDelete),
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: localvolume.Driver, VolumeHandle: name}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
					Values: []string{in.Node.Labels[corev1.LabelHostname]},
				}}}},
			}},
		},
	}
}
