package persistentvolume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	bound      = " pv.kubernetes.io/bind-completed=yes"
	bySelf     = bound + " pv.kubernetes.io/bound-by-controller=yes"
	noVolumes  = "Normal FailedBinding: no persistent volumes available for this claim and no storage class is set"
	mismatched = `Warning VolumeMismatch: Cannot bind to requested volume "v": `
	given      = "Bound gives v to uid-a by itself class=fast volume=v"
	hadKept    = "Bound gives v to uid-a class=fast volume=v"
	hadGiven   = "Bound class=fast volume=v"
	localClass = "keelson-local"
)

func local(edits ...classEdit) *storagev1.StorageClass {
	return storageClass(localClass, "local.keelson.dev", append([]classEdit{delayed}, edits...)...)
}

func TestDecideClaim(t *testing.T) {
	immediate := storageClass("fast", "disk.example.com")
	later := storageClass("fast", "kubernetes.io/no-provisioner", delayed)
	attributes := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = ptr.To("gold") }
	for _, row := range []struct {
		name string
		in   ClaimInput
		want string
	}{
		{"SET-024 a free volume suits", ClaimInput{Claim: claim("a"), Class: immediate, Free: volume("v")},
			given + bySelf},
		{"SET-024 one is kept for its name", ClaimInput{Claim: claim("a"), Claiming: []*corev1.PersistentVolume{
			volume("v", kept("a", ""))}}, hadKept + bySelf},
		{"one is kept for it by the scheduler", ClaimInput{Claim: claim("a"), Class: later,
			Claiming: []*corev1.PersistentVolume{volume("v", kept("a", "uid-a"))}}, hadGiven + bySelf},
		{"one that knows its UID comes before a smaller one", ClaimInput{Claim: claim("a"),
			Claiming: []*corev1.PersistentVolume{volume("u", kept("a", ""), sized("6Gi")),
				volume("v", kept("a", "uid-a"))}}, hadGiven + bySelf},
		{"one that is kept for another of the name", ClaimInput{Claim: claim("a", ofClass("")),
			Claiming: []*corev1.PersistentVolume{volume("v", kept("a", "uid-of-before"))}},
			"Pending; " + noVolumes},
		{"one that is kept for it is too small", ClaimInput{Claim: claim("a"), Free: volume("w"),
			Claiming: []*corev1.PersistentVolume{volume("v", kept("a", ""), sized("4Gi"))}},
			"Bound gives w to uid-a by itself class=fast volume=w" + bySelf},
		{"one that is kept for it goes", ClaimInput{Claim: claim("a", ofClass("")),
			Claiming: []*corev1.PersistentVolume{volume("v", kept("a", ""), ending)}},
			"Pending; " + mismatched + "the volume is marked for deletion; " + noVolumes},
		{"one that is kept for it is a device", ClaimInput{Claim: claim("a", ofClass("")),
			Claiming: []*corev1.PersistentVolume{volume("v", kept("a", ""), block)}},
			"Pending; " + mismatched + "incompatible volumeMode; " + noVolumes},

		{"by name", ClaimInput{Claim: claim("a", naming("v")), Volume: volume("v")}, given + bound},
		{"by name, not there yet", ClaimInput{Claim: claim("a", naming("v"))}, "Pending"},
		{"by name, too small", ClaimInput{Claim: claim("a", naming("v")), Volume: volume("v", sized("4Gi"))},
			"Pending; " + mismatched + "requested PV is too small"},
		{"by name, just large enough", ClaimInput{Claim: claim("a", naming("v")), Volume: volume("v", sized("5Gi"))},
			given + bound},
		{"by name, of another class", ClaimInput{Claim: claim("a", naming("v")), Volume: volume("v", class("slow"))},
			"Pending; " + mismatched + "storageClassName does not match"},
		{"by name, with other access", ClaimInput{Claim: claim("a", naming("v"), modes(corev1.ReadWriteMany)),
			Volume: volume("v")},
			"Pending; " + mismatched + "incompatible accessMode"},
		{"by name, with other attributes", ClaimInput{Claim: claim("a", naming("v"), attributes), Volume: volume("v")},
			"Pending; " + mismatched + "VolumeAttributesClassName does not match"},
		{"by name, another's", ClaimInput{Claim: claim("a", naming("v")), Volume: volume("v", kept("b", ""))},
			`Pending; Warning FailedBinding: volume "v" already bound to a different claim.`},
		{"both ways", ClaimInput{Claim: claim("a", naming("v")), Volume: volume("v", kept("a", ""), sized("1Gi"))},
			hadKept + bound},

		{"SET-053 no class yet", ClaimInput{Claim: claim("a", noClass), Default: local(asDefault)},
			"Pending class=keelson-local volume="},
		{"SET-053 no class at all", ClaimInput{Claim: claim("a", noClass)},
			"Pending; " + noVolumes},
		{"no class on purpose", ClaimInput{Claim: claim("a", ofClass("")), Default: nil},
			"Pending; " + noVolumes},
		{"no class, but a volume without one", ClaimInput{Claim: claim("a", noClass), Default: local(asDefault),
			Free: volume("v")}, "Bound gives v to uid-a by itself class=(none) volume=v" + bySelf},
		{"no node is chosen", ClaimInput{Claim: claim("a"), Class: later},
			"Pending; Normal WaitForFirstConsumer: waiting for first consumer to be created before binding"},
		{"no such class", ClaimInput{Claim: claim("a")},
			`Pending; Warning ProvisioningFailed: storageclass.storage.k8s.io "fast" not found`},
		{"on its way out", ClaimInput{Claim: claim("a", going), Free: volume("v")}, "Pending"},

		{"bound", ClaimInput{Claim: claim("a", naming("v"), complete), Volume: volume("v", kept("a", "uid-a"))},
			"Bound"},
		{"bound, the volume forgot it", ClaimInput{Claim: claim("a", naming("v"), complete), Volume: volume("v")},
			"Bound gives v to uid-a by itself"},
		{"bound, the volume is gone", ClaimInput{Claim: claim("a", naming("v"), complete)},
			"Lost; Warning ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!"},
		{"bound to nothing", ClaimInput{Claim: claim("a", complete)},
			"Lost; Warning ClaimLost: Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"},
		{"bound to another's", ClaimInput{Claim: claim("a", naming("v"), complete),
			Volume: volume("v", kept("a", "uid-later"))},
			"Lost; Warning ClaimMisbound: Two claims are bound to the same volume, this one is bound incorrectly"},
		{"lost before", ClaimInput{Claim: claim("a", naming("v"), complete, func(c *corev1.PersistentVolumeClaim) {
			c.Status.Phase = corev1.ClaimLost
		})}, "Lost"},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := row.in.Claim.DeepCopy()
			plan := DecideClaim(row.in)
			got := plan.summary()
			if got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
			if !apiequality.Semantic.DeepEqual(before, row.in.Claim) {
				t.Error("the input was changed")
			}
		})
	}
}

// A single write assigns a volume, and records whether users had kept it for the claim.
func TestGiving(t *testing.T) {
	given := DecideClaim(ClaimInput{Claim: claim("a"), Free: volume("v")})
	ref := given.Volume.Spec.ClaimRef
	if ref == nil || ref.Kind != "PersistentVolumeClaim" || ref.APIVersion != "v1" || ref.Namespace != "ns" ||
		ref.Name != "a" || ref.UID != "uid-a" || given.Volume.Annotations[annotationByController] != "yes" {
		t.Errorf("given away as %+v, %v", ref, given.Volume.Annotations)
	}
	keep := DecideClaim(ClaimInput{Claim: claim("a"), Claiming: []*corev1.PersistentVolume{volume("v", kept("a", ""))}})
	if keep.Volume.Spec.ClaimRef.UID != "uid-a" || keep.Volume.Annotations[annotationByController] != "" {
		t.Errorf("kept for it, given as %+v, %v", keep.Volume.Spec.ClaimRef, keep.Volume.Annotations)
	}
	if again := DecideClaim(ClaimInput{Claim: claim("a"), Claiming: []*corev1.PersistentVolume{
		volume("v", kept("a", "uid-a"))}}); again.Volume != nil {
		t.Errorf("given twice: %s", again.summary())
	}
	status := given.Status
	if held := status.Capacity["storage"]; held.String() != "10Gi" || len(status.AccessModes) != 2 {
		t.Errorf("the claim has %+v, want what its volume has", status)
	}
	if lost := DecideClaim(ClaimInput{Claim: claim("a", naming("v"), complete, func(c *corev1.PersistentVolumeClaim) {
		c.Status = status
	})}).Status; lost.Capacity != nil || lost.AccessModes != nil {
		t.Errorf("a lost claim has %+v", lost)
	}
}

func TestProvision(t *testing.T) {
	const failed = "Pending class=keelson-local volume=; Warning ProvisioningFailed: "
	ours := func(edits ...claimEdit) *corev1.PersistentVolumeClaim {
		return claim("a", append([]claimEdit{ofClass(localClass), on("n1")}, edits...)...)
	}
	for _, row := range []struct {
		name string
		in   ClaimInput
		want string
	}{
		{"SET-024 SET-053 a folder on the chosen node", ClaimInput{Claim: ours(), Class: local(), Node: node("n1")},
			"Bound creates pvc-uid-a class=keelson-local volume=pvc-uid-a" + bySelf +
				" volume.kubernetes.io/selected-node=n1"},
		{"for one Pod", ClaimInput{Claim: ours(modes(corev1.ReadWriteOncePod)), Class: local(), Node: node("n1")},
			"Bound creates pvc-uid-a class=keelson-local volume=pvc-uid-a" + bySelf +
				" volume.kubernetes.io/selected-node=n1"},
		{"it was made before", ClaimInput{Claim: ours(), Class: local(), Node: node("n1"),
			Claiming: []*corev1.PersistentVolume{volume("pvc-uid-a", folder, kept("a", "uid-a"))}},
			"Bound class=keelson-local volume=pvc-uid-a" + bySelf + " volume.kubernetes.io/selected-node=n1"},
		{"for many nodes", ClaimInput{Claim: ours(modes(corev1.ReadWriteOnce, corev1.ReadWriteMany)), Class: local(),
			Node: node("n1")},
			failed + "spec.accessModes[1]: ReadWriteMany is not possible for a volume on one node: " +
				"use ReadWriteOnce or ReadWriteOncePod"},
		{"for many readers", ClaimInput{Claim: ours(modes(corev1.ReadOnlyMany)), Class: local(), Node: node("n1")},
			failed + "spec.accessModes[0]: ReadOnlyMany is not possible for a volume on one node: " +
				"use ReadWriteOnce or ReadWriteOncePod"},
		{"a device", ClaimInput{Claim: ours(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
		}), Class: local(), Node: node("n1")},
			failed + "spec.volumeMode: Block is not possible for a folder: use Filesystem"},
		{"by labels", ClaimInput{Claim: ours(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{}
		}), Class: local(), Node: node("n1")},
			failed + "spec.selector: a volume that is made for the claim has no labels to select it by"},
		{"from a snapshot", ClaimInput{Claim: ours(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{}
		}), Class: local(), Node: node("n1")},
			failed + "spec.dataSource: a volume of local.keelson.dev begins empty"},
		{"with attributes", ClaimInput{Claim: ours(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeAttributesClassName = ptr.To("gold")
		}), Class: local(), Node: node("n1")},
			failed + "spec.volumeAttributesClassName: local.keelson.dev knows no attributes"},
		{"with parameters", ClaimInput{Claim: ours(), Node: node("n1"), Class: local(func(c *storagev1.StorageClass) {
			c.Parameters = map[string]string{"a": "b"}
		})}, failed + `StorageClass "keelson-local": local.keelson.dev takes neither parameters nor mountOptions`},
		{"the node is gone", ClaimInput{Claim: ours(), Class: local()}, failed + `the selected node "n1" is gone`},
		{"the node has no name for affinity", ClaimInput{Claim: ours(), Class: local(),
			Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}},
			failed + `the selected node "n1" has no label kubernetes.io/hostname`},
		{"at once", ClaimInput{Claim: claim("a", ofClass(localClass)), Class: storageClass(localClass,
			"local.keelson.dev")}, `Pending; Warning ProvisioningFailed: StorageClass "keelson-local": ` +
			"volumeBindingMode must be WaitForFirstConsumer for the provisioner local.keelson.dev, whose volumes are " +
			"on the Pod's node"},
		{"by hand", ClaimInput{Claim: claim("a"), Class: storageClass("fast", "kubernetes.io/no-provisioner")},
			`Pending; Warning ProvisioningFailed: no volume of StorageClass "fast" suits this claim, and its ` +
				"provisioner kubernetes.io/no-provisioner makes none"},
		{"by somebody else", ClaimInput{Claim: claim("a"), Class: storageClass("fast", "disk.example.com")},
			"Pending class=fast volume= volume.kubernetes.io/storage-provisioner=disk.example.com " +
				"volume.beta.kubernetes.io/storage-provisioner=disk.example.com; Normal ExternalProvisioning: " +
				"Waiting for a volume to be created either by the external provisioner 'disk.example.com' or " +
				"manually by the system administrator. If volume creation is delayed, please verify that the " +
				"provisioner is running and correctly registered."},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := DecideClaim(row.in).summary(); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
	told := claim("a", marked("volume.kubernetes.io/storage-provisioner", "disk.example.com"),
		marked("volume.beta.kubernetes.io/storage-provisioner", "disk.example.com"))
	if plan := DecideClaim(ClaimInput{Claim: told,
		Class: storageClass("fast", "disk.example.com")}); plan.Claim != nil {
		t.Errorf("its provisioner is told twice: %s", plan.summary())
	}
}

// A created volume names the claim, and the node that has its folder.
func TestLocalVolume(t *testing.T) {
	made := DecideClaim(ClaimInput{Claim: claim("a", ofClass(localClass), on("n1")), Class: local(),
		Node: node("n1")}).Create
	term := made.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]
	for what, ok := range map[string]bool{
		"the driver":      made.Spec.CSI.Driver == "local.keelson.dev",
		"the folder":      made.Spec.CSI.VolumeHandle == "pvc-uid-a",
		"the claim":       made.Spec.ClaimRef.UID == "uid-a" && made.Spec.ClaimRef.Namespace == "ns",
		"the class":       made.Spec.StorageClassName == localClass,
		"the size":        made.Spec.Capacity.Storage().String() == "5Gi",
		"the access":      len(made.Spec.AccessModes) == 1 && made.Spec.AccessModes[0] == "ReadWriteOnce",
		"the policy":      made.Spec.PersistentVolumeReclaimPolicy == "Delete",
		"the node's name": made.Labels["local.keelson.dev/node"] == "n1",
		"the node's label": term.Key == "kubernetes.io/hostname" && term.Operator == "In" &&
			term.Values[0] == "host-n1",
		"the finalizers":     len(made.Finalizers) == 2 && made.Finalizers[1] == "local.keelson.dev/folder",
		"its provisioner":    made.Annotations["pv.kubernetes.io/provisioned-by"] == "local.keelson.dev",
		"its mode of access": *made.Spec.VolumeMode == "Filesystem",
	} {
		if !ok {
			t.Errorf("%s is wrong: %+v", what, made)
		}
	}
	retained := local(func(c *storagev1.StorageClass) {
		c.ReclaimPolicy = ptr.To(corev1.PersistentVolumeReclaimRetain)
	})
	if kept := DecideClaim(ClaimInput{Claim: claim("a", ofClass(localClass), on("n1")), Class: retained,
		Node: node("n1")}).Create; kept.Spec.PersistentVolumeReclaimPolicy != "Retain" {
		t.Errorf("SET-055: the class's policy is lost: %s", kept.Spec.PersistentVolumeReclaimPolicy)
	}
}
