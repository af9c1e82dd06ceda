package authz_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// A node that was taken over neither tells of another node's devices nor reads claims that are not its Pods', and
// does not make them its Pods' by saying so.
func TestNodesAndDevices(t *testing.T) {
	authority := servertest.NewAuthority(t)
	s := servertest.Start(t, authority.Trusted(t))
	mine := authority.Client(t, s, "system:node:a", "system:nodes")
	theirs := authority.Client(t, s, "system:node:b", "system:nodes")
	ctx, create := t.Context(), metav1.CreateOptions{}
	const unrelated = "no relationship found between node 'b' and this object"

	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "a-gpu"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: ptr.To("a"),
		Pool: resourcev1.ResourcePool{Name: "a", ResourceSliceCount: 1}}}
	_, err := theirs.ResourceV1().ResourceSlices().Create(ctx, slice, create)
	refused(t, "telling of another node's devices", err, `node "b" can only create ResourceSlices`)
	written, err := mine.ResourceV1().ResourceSlices().Create(ctx, slice, create)
	allowed(t, "telling of its devices", err)
	_, err = theirs.ResourceV1().ResourceSlices().Update(ctx, written, metav1.UpdateOptions{})
	refused(t, "changing another node's slice", err, unrelated)
	_, err = mine.ResourceV1().ResourceSlices().Update(ctx, written, metav1.UpdateOptions{})
	allowed(t, "changing its slice", err)
	own := metav1.ListOptions{FieldSelector: "spec.nodeName=a"}
	list, err := mine.ResourceV1().ResourceSlices().List(ctx, own)
	allowed(t, "listing its slices", err)
	if len(list.Items) != 1 {
		t.Errorf("it has %d slices", len(list.Items))
	}
	err = theirs.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, own)
	refused(t, "deleting another node's slices", err, "can only list/watch/deletecollection resourceslices")
	err = mine.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, own)
	allowed(t, "deleting its slices", err)

	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "made"}}
	_, err = s.Client.ResourceV1().ResourceClaims("default").Create(ctx, claim, create)
	allowed(t, "creating a claim as the administrator", err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "a",
		AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{Name: "c", Image: "i"}},
		ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("t")}}}}
	_, err = s.Client.CoreV1().ServiceAccounts("default").Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, create)
	allowed(t, "creating the account", err)
	_, err = s.Client.CoreV1().Pods("default").Create(ctx, pod, create)
	allowed(t, "creating the Pod", err)
	_, err = mine.ResourceV1().ResourceClaims("default").Get(ctx, "made", metav1.GetOptions{})
	refused(t, "reading a claim that is not made for its Pod", err,
		"no relationship found between node 'a' and this object")
	says := []byte(`{"status":{"resourceClaimStatuses":[{"name":"gpu","resourceClaimName":"made"}]}}`)
	_, err = mine.CoreV1().Pods("default").Patch(ctx, "p", types.StrategicMergePatchType, says, metav1.PatchOptions{},
		"status")
	refused(t, "saying that it is", err, `node "a" cannot update resource claim statuses`)
	_, err = s.Client.CoreV1().Pods("default").Patch(ctx, "p", types.StrategicMergePatchType, says,
		metav1.PatchOptions{}, "status")
	allowed(t, "saying so as the controller", err)
	_, err = mine.ResourceV1().ResourceClaims("default").Get(ctx, "made", metav1.GetOptions{})
	allowed(t, "reading the claim of its Pod", err)
	_, err = theirs.ResourceV1().ResourceClaims("default").Get(ctx, "made", metav1.GetOptions{})
	refused(t, "reading the claim of another node's Pod", err, unrelated)
	_, err = mine.ResourceV1().ResourceClaims("default").UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	refused(t, "writing the claim", err, `cannot update resource "resourceclaims/status"`)
}
