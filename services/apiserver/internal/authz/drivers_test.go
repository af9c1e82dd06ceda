package authz_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// SAF-187: another node's certificate neither reads nor writes what a node's drivers are, what attaches volumes to it,
// and what its drivers identify themselves with.
func TestNodesAndDrivers(t *testing.T) {
	authority := servertest.NewAuthority(t)
	s := servertest.Start(t, authority.Trusted(t))
	mine := authority.Client(t, s, "system:node:a", "system:nodes")
	theirs := authority.Client(t, s, "system:node:b", "system:nodes")
	ctx := t.Context()
	const own = "can only access CSINode with the same name as the requesting node"
	csiNode := func(name string) *storagev1.CSINode {
		return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{{Name: "disk.example.com", NodeID: "1"}}}}
	}
	create := metav1.CreateOptions{}

	_, err := s.Client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, create)
	allowed(t, "creating the node as the administrator", err)
	_, err = theirs.StorageV1().CSINodes().Create(ctx, csiNode("a"), create)
	refused(t, "creating another node's CSINode", err, own)
	written, err := mine.StorageV1().CSINodes().Create(ctx, csiNode("a"), create)
	allowed(t, "creating its CSINode", err)
	_, err = mine.StorageV1().CSINodes().Update(ctx, written, metav1.UpdateOptions{})
	allowed(t, "updating its CSINode", err)
	_, err = theirs.StorageV1().CSINodes().Update(ctx, written, metav1.UpdateOptions{})
	refused(t, "updating another node's CSINode", err, own)
	_, err = theirs.StorageV1().CSINodes().Get(ctx, "a", metav1.GetOptions{})
	refused(t, "reading another node's CSINode", err, own)
	err = theirs.StorageV1().CSINodes().Delete(ctx, "a", metav1.DeleteOptions{})
	refused(t, "deleting another node's CSINode", err, own)
	_, err = theirs.CoreV1().Nodes().Patch(ctx, "a", types.MergePatchType,
		[]byte(`{"status":{"volumesInUse":["kubernetes.io/csi/d^v"]}}`), metav1.PatchOptions{}, "status")
	refused(t, "saying that another node uses a volume", err, `node "b" is not allowed to modify node "a"`)

	_, err = s.Client.StorageV1().VolumeAttachments().Create(ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "to-a"}, Spec: storagev1.VolumeAttachmentSpec{Attacher: "disk.example.com",
			NodeName: "a", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("v")}}}, create)
	allowed(t, "creating an attachment as the administrator", err)
	_, err = mine.StorageV1().VolumeAttachments().Get(ctx, "to-a", metav1.GetOptions{})
	allowed(t, "reading its attachment", err)
	_, err = theirs.StorageV1().VolumeAttachments().Get(ctx, "to-a", metav1.GetOptions{})
	refused(t, "reading another node's attachment", err, "no relationship found between node 'b' and this object")
	_, err = mine.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	refused(t, "listing attachments", err, `cannot list resource "volumeattachments"`)

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	_, err = s.Client.CoreV1().Secrets("default").Create(ctx, secret, create)
	allowed(t, "creating a Secret as the administrator", err)
	_, err = mine.CoreV1().Secrets("default").Get(ctx, "s", metav1.GetOptions{})
	refused(t, "reading a Secret of no volume", err, "no relationship found between node 'a' and this object")
}
