package persistentvolume

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type (
	claimEdit  = func(*corev1.PersistentVolumeClaim)
	volumeEdit = func(*corev1.PersistentVolume)
	classEdit  = func(*storagev1.StorageClass)
)

func amount(text string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(text)}
}

// claim returns a claim for 5Gi of the class fast, writable from one node.
func claim(name string, edits ...claimEdit) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To("fast"),
			Resources:  corev1.VolumeResourceRequirements{Requests: amount("5Gi")},
			VolumeMode: ptr.To(corev1.PersistentVolumeFilesystem),
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

func ofClass(name string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
}

func noClass(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }

func naming(volume string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }
}

func complete(c *corev1.PersistentVolumeClaim) { marked("pv.kubernetes.io/bind-completed", "yes")(c) }

func marked(key, value string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[key] = value
	}
}

func on(node string) claimEdit { return marked("volume.kubernetes.io/selected-node", node) }

func modes(all ...corev1.PersistentVolumeAccessMode) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes = all }
}

func going(c *corev1.PersistentVolumeClaim) {
	c.DeletionTimestamp = &metav1.Time{Time: now}
	c.Finalizers = []string{"kubernetes.io/pvc-protection"}
}

// volume returns a free volume of 10Gi of the class fast.
func volume(name string, edits ...volumeEdit) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany},
			Capacity:    amount("10Gi"), StorageClassName: "fast",
			VolumeMode:                    ptr.To(corev1.PersistentVolumeFilesystem),
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: "/srv/" + name}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
	for _, edit := range edits {
		edit(v)
	}
	return v
}

func sized(text string) volumeEdit {
	return func(v *corev1.PersistentVolume) { v.Spec.Capacity = amount(text) }
}

func class(name string) volumeEdit {
	return func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = name }
}

func phase(p corev1.PersistentVolumePhase) volumeEdit {
	return func(v *corev1.PersistentVolume) { v.Status.Phase = p }
}

func policy(p corev1.PersistentVolumeReclaimPolicy) volumeEdit {
	return func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = p }
}

// kept keeps a volume for a claim by its name; with a UID for exactly that claim.
func kept(name string, uid types.UID) volumeEdit {
	return func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: name, UID: uid}
	}
}

func byController(v *corev1.PersistentVolume) {
	v.Annotations = map[string]string{"pv.kubernetes.io/bound-by-controller": "yes"}
}

func block(v *corev1.PersistentVolume) { v.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }

// folder turns a volume into a folder on the node n1.
func folder(v *corev1.PersistentVolume) {
	v.Labels = map[string]string{"local.keelson.dev/node": "n1"}
	v.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "local.keelson.dev"}
	v.Finalizers = []string{"kubernetes.io/pv-protection", "local.keelson.dev/folder"}
	v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: "local.keelson.dev", VolumeHandle: v.Name}}
}

func ending(v *corev1.PersistentVolume) {
	v.DeletionTimestamp = &metav1.Time{Time: now}
	v.Finalizers = append(v.Finalizers, "kubernetes.io/pv-protection")
}

func storageClass(name, provisioner string, edits ...classEdit) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner,
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
		ReclaimPolicy:     ptr.To(corev1.PersistentVolumeReclaimDelete)}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

func delayed(c *storagev1.StorageClass) {
	c.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
}

func asDefault(c *storagev1.StorageClass) {
	c.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"kubernetes.io/hostname": "host-" + name}}}
}

// summary describes a plan in one line.
func (p ClaimPlan) summary() string {
	text := string(p.Status.Phase)
	if p.Create != nil {
		text += " creates " + p.Create.Name
	}
	if p.Volume != nil {
		text += fmt.Sprintf(" gives %s to %s", p.Volume.Name, p.Volume.Spec.ClaimRef.UID)
		if p.Volume.Annotations["pv.kubernetes.io/bound-by-controller"] != "" {
			text += " by itself"
		}
	}
	if p.Claim != nil {
		text += fmt.Sprintf(" class=%s volume=%s", ptr.Deref(p.Claim.Spec.StorageClassName, "(none)"),
			p.Claim.Spec.VolumeName)
		for _, key := range []string{"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller",
			"volume.kubernetes.io/selected-node", "volume.kubernetes.io/storage-provisioner",
			"volume.beta.kubernetes.io/storage-provisioner"} {
			if value, ok := p.Claim.Annotations[key]; ok {
				text += fmt.Sprintf(" %s=%s", key, value)
			}
		}
	}
	for _, e := range p.Events {
		text += "; " + e.Type + " " + e.Reason + ": " + e.Message
	}
	return text
}
