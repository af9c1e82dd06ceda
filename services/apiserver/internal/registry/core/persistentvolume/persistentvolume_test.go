package persistentvolume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

type edit = func(*corev1.PersistentVolumeSpec)

func volume(edits ...edit) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		Capacity:               capacity("storage", "1Gi"),
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
	}}
	for _, edit := range edits {
		edit(&v.Spec)
	}
	Default(v)
	return v
}

func capacity(namesAndAmounts ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(namesAndAmounts); i += 2 {
		list[corev1.ResourceName(namesAndAmounts[i])] = resource.MustParse(namesAndAmounts[i+1])
	}
	return list
}

func holds(list corev1.ResourceList) edit {
	return func(s *corev1.PersistentVolumeSpec) { s.Capacity = list }
}

func from(source corev1.PersistentVolumeSource) edit {
	return func(s *corev1.PersistentVolumeSpec) { s.PersistentVolumeSource = source }
}

func driver(edits ...func(*corev1.CSIPersistentVolumeSource)) edit {
	csi := &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "a"}
	for _, edit := range edits {
		edit(csi)
	}
	return from(corev1.PersistentVolumeSource{CSI: csi})
}

func local(path string) edit {
	return from(corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}})
}

func on(terms ...corev1.NodeSelectorTerm) edit {
	return func(s *corev1.PersistentVolumeSpec) {
		s.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
}

func zone(name string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}
}

func reclaim(policy corev1.PersistentVolumeReclaimPolicy) edit {
	return func(s *corev1.PersistentVolumeSpec) { s.PersistentVolumeReclaimPolicy = policy }
}

func attributes(class *string) edit {
	return func(s *corev1.PersistentVolumeSpec) { s.VolumeAttributesClassName = class }
}

func TestDefault(t *testing.T) {
	v := volume()
	if v.Status.Phase != "Pending" || v.Spec.PersistentVolumeReclaimPolicy != "Retain" ||
		*v.Spec.VolumeMode != "Filesystem" || *v.Spec.HostPath.Type != "" {
		t.Errorf("%+v", v)
	}
	v.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound, Reason: "mine"}
	Resource.ObjectWrites().PrepareForCreate(v)
	if v.Status.Phase != "Pending" || v.Status.Reason != "" {
		t.Errorf("a new volume has the status %+v", v.Status)
	}
	sources := volume(from(corev1.PersistentVolumeSource{
		ISCSI: &corev1.ISCSIPersistentVolumeSource{}, RBD: &corev1.RBDPersistentVolumeSource{},
		ScaleIO: &corev1.ScaleIOPersistentVolumeSource{}, AzureDisk: &corev1.AzureDiskVolumeSource{},
	})).Spec
	if sources.ISCSI.ISCSIInterface != "default" || sources.RBD.RBDPool != "rbd" || sources.RBD.RadosUser != "admin" ||
		sources.RBD.Keyring != "/etc/ceph/keyring" || sources.ScaleIO.StorageMode != "ThinProvisioned" ||
		sources.ScaleIO.FSType != "xfs" || *sources.AzureDisk.CachingMode != "ReadWrite" ||
		*sources.AzureDisk.Kind != "Shared" || *sources.AzureDisk.FSType != "ext4" || *sources.AzureDisk.ReadOnly {
		t.Errorf("%+v", sources)
	}
}

func TestValidate(t *testing.T) {
	for _, row := range []struct {
		name   string
		volume *corev1.PersistentVolume
		want   []string
	}{
		{"plain", volume(), nil},
		{"nothing", volume(func(s *corev1.PersistentVolumeSpec) { *s = corev1.PersistentVolumeSpec{} }), []string{
			"spec.accessModes: Required value", "spec.capacity: Required value",
			"spec: Required value: must specify a volume type"}},
		{"no size", volume(holds(capacity("cpu", "1"))), []string{"spec.capacity: Unsupported value: "}},
		{"more than a size", volume(holds(capacity("storage", "1", "cpu", "1"))),
			[]string{"spec.capacity: Unsupported value: "}},
		{"smallest", volume(holds(capacity("storage", "1"))), nil},
		{"none", volume(holds(capacity("storage", "0"))),
			[]string{`spec.capacity[storage]: Invalid value: "0": must be greater than zero`}},
		{"mode of access", volume(func(s *corev1.PersistentVolumeSpec) {
			s.AccessModes = []corev1.PersistentVolumeAccessMode{"Sometimes"}
		}), []string{`spec.accessModes[0]: Unsupported value: "Sometimes"`}},
		{"policy", volume(reclaim("Burn")), []string{
			`spec.persistentVolumeReclaimPolicy: Unsupported value: "Burn": supported values: "Delete", "Recycle", "Retain"`}},
		{"the root is recycled", volume(reclaim("Recycle"), from(corev1.PersistentVolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/data/.//."}})), nil},
		{"the root is recycled after all", volume(reclaim("Recycle"), from(corev1.PersistentVolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "//."}})), []string{
			"spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"}},
		{"class", volume(func(s *corev1.PersistentVolumeSpec) { s.StorageClassName = "A" }),
			[]string{`spec.storageClassName: Invalid value: "A"`}},
		{"mode", volume(func(s *corev1.PersistentVolumeSpec) {
			s.VolumeMode = ptr.To(corev1.PersistentVolumeMode("Tape"))
		}), []string{`spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"`}},
		{"attributes", volume(driver(), attributes(ptr.To("gold"))), nil},
		{"attributes of no driver", volume(attributes(ptr.To(""))), []string{
			"spec.volumeAttributesClassName: Required value",
			"spec.csi: Required value: has to be specified when using volumeAttributesClassName"}},
		{"part of a node", volume(local("/mnt/a"), on(zone("a"))), nil},
		{"part of no node", volume(local("/mnt/a")),
			[]string{"spec.nodeAffinity: Required value: Local volume requires node affinity"}},
		{"nowhere", volume(on()), []string{"spec.nodeAffinity.required.nodeSelectorTerms: Required value"}},
		{"an affinity to nothing", volume(func(s *corev1.PersistentVolumeSpec) {
			s.NodeAffinity = &corev1.VolumeNodeAffinity{}
		}), []string{"spec.nodeAffinity.required: Required value: must specify required node constraints"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(row.volume), row.want...) })
	}
}

func TestValidateUpdate(t *testing.T) {
	secret := &corev1.SecretReference{Name: "a", Namespace: "b"}
	expands := driver(func(c *corev1.CSIPersistentVolumeSource) {
		c.ControllerExpandSecretRef, c.NodeExpandSecretRef = secret, secret
	})
	const moved = "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"
	for _, row := range []struct {
		name    string
		to, old *corev1.PersistentVolume
		want    []string
	}{
		{"policy, claim, size", volume(reclaim("Delete"), holds(capacity("storage", "2Gi")),
			func(s *corev1.PersistentVolumeSpec) { s.ClaimRef = &corev1.ObjectReference{Name: "a"} }), volume(), nil},
		{"elsewhere", volume(local("/a"), on(zone("a"))), volume(local("/b"), on(zone("a"))), []string{moved}},
		{"another driver", volume(driver()), volume(), []string{moved}},
		{"no driver", volume(), volume(driver()), []string{moved}},
		{"secrets for growth", volume(expands), volume(driver()), nil},
		{"other secrets for growth", volume(driver()), volume(expands), []string{moved}},
		{"mode", volume(func(s *corev1.PersistentVolumeSpec) { s.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }),
			volume(), []string{`spec.volumeMode: Invalid value: "Block": field is immutable`}},
		{"nodes are told", volume(on(zone("a"))), volume(), nil},
		{"other nodes", volume(on(zone("a"))), volume(on(zone("b"))), []string{"spec.nodeAffinity: Invalid value: "}},
		{"attributes", volume(driver(), attributes(ptr.To("a"))), volume(driver(), attributes(ptr.To("b"))), nil},
		{"no attributes any more", volume(driver()), volume(driver(), attributes(ptr.To("b"))), []string{
			"spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, ValidateUpdate(row.to, row.old), row.want...) })
	}
}

func TestValidateStatusUpdate(t *testing.T) {
	v := volume()
	v.Status.Phase = corev1.VolumeReleased
	fieldtest.Check(t, ValidateStatusUpdate(v, v))
	v.Status.Phase = "Lost"
	fieldtest.Check(t, ValidateStatusUpdate(v, v), `status.phase: Unsupported value: "Lost"`)
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
