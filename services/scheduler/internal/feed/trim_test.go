package feed

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/scheduler/internal/columns"
	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/rules"
)

func fullPod(node string) *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"),
		"example.com/gpu": resource.MustParse("1")}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", ResourceVersion: "5", Generation: 2,
			Labels:        map[string]string{"a": "b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}, Annotations: map[string]string{"big": "x"}},
		Spec: corev1.PodSpec{
			NodeName: node, SchedulerName: "s", Priority: new(int32),
			Volumes: []corev1.Volume{{Name: "v"}, {Name: "d", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}},
				{Name: "e", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
					VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}}},
			Overhead:     corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")},
			NodeSelector: map[string]string{"zone": "a"},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
					Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: "k", Operator: corev1.NodeSelectorOpExists}}}}}}},
			Tolerations: []corev1.Toleration{{Key: "t", Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "E", Value: "v"}},
				Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests},
				Ports:     []corev1.ContainerPort{{ContainerPort: 1}, {ContainerPort: 2, HostPort: 2}},
			}},
			InitContainers: []corev1.Container{{Name: "s", RestartPolicy: &always,
				Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
		Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady},
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "m"}},
		},
	}
	if node != "" { // it runs, and is being resized
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Image: "i",
			Resources: &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}}}
		whole := func(cpu string) *corev1.ResourceRequirements {
			return &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
		}
		p.Spec.Resources, p.Status.Resources = whole("4"), whole("5")
	}
	return p
}

// What is left of a Pod gives the same class and takes the same room.
func TestTrimPodKeepsWhatRulesRead(t *testing.T) {
	for _, node := range []string{"", "n"} {
		state, profile := columns.New(1), config.DefaultProfile()
		full := fullPod(node)
		want := state.Usage(full)
		key := profile.Key(rules.PodOf(full, want))
		object, err := trimPod(fullPod(node))
		if err != nil {
			t.Fatal(err)
		}
		p := object.(*corev1.Pod)
		if got := state.Usage(p); got != want {
			t.Errorf("node %q: takes %+v, want %+v", node, got, want)
		}
		if node == "" && profile.Key(rules.PodOf(p, want)) != key {
			t.Error("the class is another one")
		}
		if p.Namespace != "ns" || p.Name != "p" || p.UID != "u" || p.ResourceVersion != "5" || p.Generation != 2 ||
			p.Spec.NodeName != node || p.Spec.SchedulerName != "s" {
			t.Errorf("node %q: identity is %+v", node, p.ObjectMeta)
		}
		if p.ManagedFields != nil || p.Annotations != nil || len(p.Spec.Volumes) != 2 ||
			p.Spec.Volumes[1].Ephemeral.VolumeClaimTemplate != nil || p.Spec.Containers[0].Env != nil ||
			p.Spec.Containers[0].Resources.Limits != nil {
			t.Errorf("node %q: keeps too much", node)
		}
		if v := p.Spec.Volumes; v[0].PersistentVolumeClaim.ClaimName != "c" || v[1].Name != "e" {
			t.Errorf("node %q: claims %+v", node, v)
		}
		if node == "" && (len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Message != "m") {
			t.Errorf("conditions are %v", p.Status.Conditions)
		}
	}
}

func TestTrimNode(t *testing.T) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a"},
			Annotations: map[string]string{"big": "x"}},
		Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: "k"}}, PodCIDR: "10.0.0.0/24"},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")},
			Images: []corev1.ContainerImage{{Names: []string{"i"}, SizeBytes: 7}}},
	}
	object, err := trimNode(n)
	if err != nil {
		t.Fatal(err)
	}
	got := object.(*corev1.Node)
	if got.Name != "n" || got.Labels["zone"] != "a" || !got.Spec.Unschedulable || len(got.Spec.Taints) != 1 ||
		len(got.Status.Allocatable) != 1 {
		t.Errorf("is %+v", got)
	}
	if len(got.Status.Images) != 1 || got.Status.Images[0].Names[0] != "i" || got.Status.Images[0].SizeBytes != 7 {
		t.Errorf("has the images %v", got.Status.Images)
	}
	if got.Annotations != nil || got.Spec.PodCIDR != "" {
		t.Errorf("keeps too much: %+v", got)
	}
}

// What is left of claims, volumes and classes asks and gives the same.
func TestTrimVolumes(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "o", UID: "u", ResourceVersion: "5",
		Labels:        map[string]string{"a": "b"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}, Finalizers: []string{"f"},
		DeletionTimestamp: &metav1.Time{}, OwnerReferences: []metav1.OwnerReference{{UID: "p"}},
		Annotations: map[string]string{"big": "x", "pv.kubernetes.io/bind-completed": "yes",
			"volume.kubernetes.io/selected-node": "n", "volume.beta.kubernetes.io/storage-class": "old"}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v",
		StorageClassName: new(string), Selector: &metav1.LabelSelector{}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost,
			Conditions: []corev1.PersistentVolumeClaimCondition{{}}}}
	object, _ := trimClaim(claim.DeepCopy())
	c := object.(*corev1.PersistentVolumeClaim)
	if len(c.Annotations) != 3 || len(c.OwnerReferences) != 1 || c.DeletionTimestamp == nil || c.UID != "u" ||
		c.ResourceVersion != "5" || c.Spec.VolumeName != "v" || c.Spec.StorageClassName == nil ||
		c.Spec.Selector == nil || c.Status.Phase != corev1.ClaimLost {
		t.Errorf("a claim is %+v", c)
	}
	if c.Status.Conditions != nil || c.ManagedFields != nil || c.Labels != nil {
		t.Errorf("keeps too much of a claim: %+v", c)
	}
	volume := &corev1.PersistentVolume{ObjectMeta: meta, Spec: corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{}, AccessModes: []corev1.PersistentVolumeAccessMode{"m"}, StorageClassName: "s",
		ClaimRef: &corev1.ObjectReference{}, VolumeMode: new(corev1.PersistentVolumeMode),
		NodeAffinity: &corev1.VolumeNodeAffinity{}, PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{}}},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeFailed, Message: "m"}}
	object, _ = trimVolume(volume.DeepCopy())
	v := object.(*corev1.PersistentVolume)
	want := volume.DeepCopy()
	want.Spec.CSI, want.Status.Message = nil, ""
	want.ManagedFields, want.Annotations, want.OwnerReferences, want.Finalizers = nil, nil, nil, nil
	if v.String() != want.String() {
		t.Errorf("a volume is %+v", v)
	}
	class := &storagev1.StorageClass{ObjectMeta: meta, Provisioner: "p", Parameters: map[string]string{"a": "b"},
		VolumeBindingMode: new(storagev1.VolumeBindingMode), AllowedTopologies: []corev1.TopologySelectorTerm{{}}}
	object, _ = trimClass(class.DeepCopy())
	if s := object.(*storagev1.StorageClass); s.Provisioner != "p" || s.VolumeBindingMode == nil ||
		len(s.AllowedTopologies) != 1 || s.Name != "o" || s.Parameters != nil || s.ManagedFields != nil {
		t.Errorf("a class is %+v", s)
	}
}

// What is left of volumes, CSINodes and VolumeAttachments counts the same on nodes.
func TestTrimWhatIsAttached(t *testing.T) {
	for name, test := range map[string]struct{ whole, want corev1.PersistentVolumeSource }{
		"of a driver": {
			corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h",
				FSType: "ext4", VolumeAttributes: map[string]string{"a": "b"}}},
			corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}}},
		"that a driver took over": {
			corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "v"}},
			corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "cinder.csi.openstack.org",
				VolumeHandle: "v"}}},
		"a folder": {corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
			corev1.PersistentVolumeSource{}},
	} {
		object, _ := trimVolume(&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: test.whole}})
		if got := object.(*corev1.PersistentVolume).Spec.PersistentVolumeSource; got.String() != test.want.String() {
			t.Errorf("%s: is %+v", name, got)
		}
	}
	count, pv := int32(3), "pv"
	object, _ := trimCSINode(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{
		"a": "b"}}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "d", NodeID: "id",
		TopologyKeys: []string{"zone"}, Allocatable: &storagev1.VolumeNodeResources{Count: &count}}}}})
	n := object.(*storagev1.CSINode)
	if d := n.Spec.Drivers[0]; n.Name != "n" || d.Name != "d" || *d.Allocatable.Count != 3 || d.NodeID != "" ||
		d.TopologyKeys != nil || n.Annotations != nil {
		t.Errorf("a CSINode is %+v", n)
	}
	object, _ = trimAttachment(&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a",
		Labels: map[string]string{"a": "b"}}, Spec: storagev1.VolumeAttachmentSpec{Attacher: "d", NodeName: "n",
		Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
		Status: storagev1.VolumeAttachmentStatus{Attached: true}})
	a := object.(*storagev1.VolumeAttachment)
	if a.Name != "a" || a.Spec.Attacher != "d" || a.Spec.NodeName != "n" ||
		*a.Spec.Source.PersistentVolumeName != "pv" ||
		a.Status.Attached || a.Labels != nil {
		t.Errorf("a VolumeAttachment is %+v", a)
	}
	tells := true
	object, _ = trimDriver(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "d",
		Labels: map[string]string{"a": "b"}}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &tells,
		PreventPodSchedulingIfMissing: &tells, AttachRequired: &tells}})
	if d := object.(*storagev1.CSIDriver); d.Name != "d" || d.Spec.StorageCapacity == nil ||
		d.Spec.PreventPodSchedulingIfMissing == nil || d.Labels != nil ||
		d.Spec.AttachRequired != nil {
		t.Errorf("a CSIDriver is %+v", d)
	}
	size := resource.MustParse("1Gi")
	object, _ = trimStorage(&storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s",
		Labels: map[string]string{"a": "b"}}, StorageClassName: "c", NodeTopology: &metav1.LabelSelector{},
		Capacity: &size, MaximumVolumeSize: &size})
	if s := object.(*storagev1.CSIStorageCapacity); s.Namespace != "ns" || s.Name != "s" || s.StorageClassName != "c" ||
		s.NodeTopology == nil || s.Capacity == nil || s.MaximumVolumeSize == nil || s.Labels != nil {
		t.Errorf("a CSIStorageCapacity is %+v", s)
	}
}
