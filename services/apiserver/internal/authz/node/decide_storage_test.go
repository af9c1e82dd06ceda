package node

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// bound is a volume of a driver that is bound to the claim of a Pod, and has the driver use Secrets.
func bound(claim string, change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	secret := func(name string) *corev1.SecretReference {
		return &corev1.SecretReference{Namespace: "drivers", Name: name}
	}
	v := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		ClaimRef: &corev1.ObjectReference{Namespace: "ns", Name: claim, UID: "c"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			NodeStageSecretRef: secret("stage"), NodePublishSecretRef: secret("publish"),
			NodeExpandSecretRef: secret("expand"), ControllerPublishSecretRef: secret("controller"),
			ControllerExpandSecretRef: secret("controller")}},
	}}
	if change != nil {
		change(v)
	}
	return v
}

// SAF-187: a node reads what attaches volumes to it, writes its own CSINode, and reads the Secrets that the drivers of
// its Pods' volumes need on nodes, no others.
func TestStorage(t *testing.T) {
	const storage, nodes, attachments, secrets = "storage.k8s.io", "csinodes", "volumeattachments", "secrets"
	const unrelated = "no relationship found between node 'a' and this object"
	const own = "can only access CSINode with the same name as the requesting node"
	all := []string{"get", "update", "patch", "delete"}
	for name, row := range map[string]struct {
		verbs                     []string
		group, resource, ns, name string
		volume                    *corev1.PersistentVolume
		allowed                   bool
		reason                    string
	}{
		"its CSINode":   {verbs: all, group: storage, resource: nodes, name: "a", allowed: true},
		"a new CSINode": {verbs: []string{"create"}, group: storage, resource: nodes, allowed: true},
		"another's CSINode": {verbs: append(all, "create"), group: storage, resource: nodes, name: "b",
			reason: own},
		"all CSINodes":    {verbs: []string{"list", "watch", "deletecollection"}, group: storage, resource: nodes},
		"drivers":         {verbs: read, group: storage, resource: "csidrivers", allowed: true},
		"writing drivers": {verbs: all[1:], group: storage, resource: "csidrivers", name: "d"},
		"its attachment":  {verbs: []string{"get"}, group: storage, resource: attachments, name: "to-a", allowed: true},
		"another's attachment": {verbs: []string{"get"}, group: storage, resource: attachments, name: "to-b",
			reason: unrelated},
		"no attachment": {verbs: []string{"get"}, group: storage, resource: attachments, name: "none",
			reason: unrelated},
		"all attachments":     {verbs: []string{"list", "watch"}, group: storage, resource: attachments},
		"writing attachments": {verbs: append(all[1:], "create"), group: storage, resource: attachments, name: "to-a"},

		"for staging":    {verbs: []string{"get"}, resource: secrets, ns: "drivers", name: "stage", allowed: true},
		"for publishing": {verbs: []string{"get"}, resource: secrets, ns: "drivers", name: "publish", allowed: true},
		"for growing":    {verbs: []string{"get"}, resource: secrets, ns: "drivers", name: "expand", allowed: true},
		"watching it": {verbs: []string{"list", "watch"}, resource: secrets, ns: "drivers", name: "stage",
			reason: unrelated},
		"the controllers": {verbs: []string{"get"}, resource: secrets, ns: "drivers", name: "controller",
			reason: unrelated},
		"elsewhere": {verbs: []string{"get"}, resource: secrets, ns: "ns", name: "stage",
			reason: unrelated},
		"of a volume of another claim": {verbs: []string{"get"}, resource: secrets, ns: "drivers", name: "stage",
			volume: bound("theirs-claim", nil), reason: unrelated},
		"of a claim of the same name": {verbs: []string{"get"}, resource: secrets, ns: "drivers", name: "stage",
			volume: bound("mine-claim", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "before" }),
			reason: unrelated},
		"of a volume that is free": {verbs: []string{"get"}, resource: secrets, ns: "drivers", name: "stage",
			volume: bound("mine-claim", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }),
			reason: unrelated},
	} {
		volume := row.volume
		if volume == nil {
			volume = bound("mine-claim", nil)
		}
		a := New(storageOf(volume))
		for _, verb := range row.verbs {
			got, reason, err := a.Authorize(t.Context(), authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: "system:node:a", Groups: []string{user.NodesGroup}}, Verb: verb,
				APIGroup: row.group, Resource: row.resource, Namespace: row.ns, Name: row.name, ResourceRequest: true})
			if (got == authorizer.DecisionAllow) != row.allowed || reason != row.reason || err != nil {
				t.Errorf("%s: %s: %v %q %v, want %v %q", name, verb, got, reason, err, row.allowed, row.reason)
			}
		}
	}
}

// storageOf is a cluster in which every claim is bound to the volume.
func storageOf(volume *corev1.PersistentVolume) Objects {
	return Objects{
		Pods: func(_ context.Context, _, namespace, _ string) ([]corev1.Pod, error) {
			return slices.DeleteFunc(cluster(), func(p corev1.Pod) bool {
				return namespace != "" && p.Namespace != namespace
			}), nil
		},
		Volume: func(context.Context, string, string) (*corev1.PersistentVolume, error) { return volume, nil },
		Claim: func(_ context.Context, namespace, name, _ string) (*corev1.PersistentVolumeClaim, error) {
			if name != "mine-claim" {
				return nil, errors.New("asked for the claim of another node's pod")
			}
			return &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "c"},
				Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "v"}}, nil
		},
		Attachment: func(_ context.Context, name, _ string) (*storagev1.VolumeAttachment, error) {
			for attachment, node := range map[string]string{"to-a": "a", "to-b": "b"} {
				if attachment == name {
					return &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{NodeName: node}}, nil
				}
			}
			return nil, apierrors.NewNotFound(storagev1.Resource("volumeattachment"), name)
		},
	}
}
