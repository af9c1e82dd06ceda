package authz_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/apiserver/internal/servertest"
)

// A node that was taken over learns nothing of another node's volumes, and can do no more to its own than say that a
// folder is gone.
func TestNodesAndVolumes(t *testing.T) {
	authority := servertest.NewAuthority(t)
	s := servertest.Start(t, authority.Trusted(t))
	mine := authority.Client(t, s, "system:node:a", "system:nodes").CoreV1().PersistentVolumes()
	theirs := authority.Client(t, s, "system:node:b", "system:nodes").CoreV1().PersistentVolumes()
	ctx, all := t.Context(), s.Client.CoreV1().PersistentVolumes()
	if _, err := all.Create(ctx, folderOf("a"), metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating the volume: %v", err)
	}
	const lists = "can only list/watch persistentvolumes with the label selector local.keelson.dev/node=b"
	own := metav1.ListOptions{LabelSelector: "local.keelson.dev/node=a"}

	_, err := mine.Get(ctx, "folder", metav1.GetOptions{})
	allowed(t, "reading its own volume", err)
	list, err := mine.List(ctx, own)
	allowed(t, "listing its own volumes", err)
	if len(list.Items) != 1 {
		t.Errorf("node a has %d volumes, want 1", len(list.Items))
	}
	_, err = theirs.Get(ctx, "folder", metav1.GetOptions{})
	refused(t, "reading another node's volume", err, "no relationship found between node 'b' and this object")
	_, err = theirs.Get(ctx, "missing", metav1.GetOptions{})
	refused(t, "reading a volume that is not there", err, "no relationship found between node 'b' and this object")
	_, err = theirs.List(ctx, metav1.ListOptions{})
	refused(t, "listing volumes", err, lists)
	_, err = theirs.List(ctx, own)
	refused(t, "listing another node's volumes", err, lists)
	_, err = theirs.Watch(ctx, own)
	refused(t, "watching another node's volumes", err, lists)
	err = mine.Delete(ctx, "folder", metav1.DeleteOptions{})
	refused(t, "deleting its own volume", err, `cannot delete resource "persistentvolumes"`)
	_, err = mine.Create(ctx, folderOf("a"), metav1.CreateOptions{})
	refused(t, "creating a volume", err, `cannot create resource "persistentvolumes"`)

	drop := []byte(`{"metadata":{"finalizers":["kubernetes.io/pv-protection"]}}`)
	_, err = mine.Patch(ctx, "folder", types.MergePatchType, drop, metav1.PatchOptions{})
	refused(t, "letting go of a volume that is kept", err, "can only update persistentvolumes that are being deleted")
	if err := all.Delete(ctx, "folder", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting the volume: %v", err)
	}
	_, err = theirs.Patch(ctx, "folder", types.MergePatchType, drop, metav1.PatchOptions{})
	refused(t, "letting go of another node's volume", err, "no relationship found between node 'b' and this object")
	_, err = mine.Patch(ctx, "folder", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{})
	refused(t, "taking the protection off", err, "can only take the finalizer local.keelson.dev/folder off")
	_, err = mine.Patch(ctx, "folder", types.MergePatchType, []byte(`{"spec":{"claimRef":{"name":"x"}}}`),
		metav1.PatchOptions{})
	refused(t, "giving the volume to a claim", err, "can only take the finalizer local.keelson.dev/folder off")
	_, err = mine.Patch(ctx, "folder", types.MergePatchType, drop, metav1.PatchOptions{}, "status")
	refused(t, "writing the status", err, `cannot patch resource "persistentvolumes/status"`)

	_, err = mine.Patch(ctx, "folder", types.MergePatchType, drop, metav1.PatchOptions{})
	allowed(t, "letting go of its own volume that is being deleted", err)
	left, err := all.Get(ctx, "folder", metav1.GetOptions{})
	if err != nil || len(left.Finalizers) != 1 {
		t.Errorf("the volume is %+v, %v, want it with its protection", left, err)
	}
}

func folderOf(node string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "folder", Labels: map[string]string{"local.keelson.dev/node": node},
			Finalizers: []string{"kubernetes.io/pv-protection", "local.keelson.dev/folder"}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "local.keelson.dev", VolumeHandle: "pvc-1"}},
		},
	}
}
