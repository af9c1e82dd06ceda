package authz_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// A node that was taken over makes a Pod of its own to reach a Secret: no step of the way works.
func TestMirrorPodOpensNoSecret(t *testing.T) {
	authority := servertest.NewAuthority(t)
	s := servertest.Start(t, authority.Trusted(t))
	node := authority.Client(t, s, "system:node:node-1", "system:nodes")
	ctx, secrets, pods := t.Context(), node.CoreV1().Secrets("kube-system"), node.CoreV1().Pods("kube-system")
	if _, err := s.Client.CoreV1().Secrets("kube-system").Create(ctx,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating the Secret: %v", err)
	}
	noSecret := func(when string) {
		t.Helper()
		_, err := secrets.Get(ctx, "s", metav1.GetOptions{})
		refused(t, "reading the Secret "+when, err, "no relationship found between node 'node-1' and this object")
	}
	_, err := pods.Create(ctx, mirror("early", "u"), metav1.CreateOptions{})
	refused(t, "a mirror Pod of a Node that is not registered", err, "is not registered")
	registered, err := node.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("registering the node: %v", err)
	}

	pull := mirror("pull", registered.UID)
	pull.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}}
	// Who decides reads Nodes from a watch, which the answer to a write does not wait for.
	servertest.Eventually(t, "the Node to be known", func(ctx context.Context) string {
		_, err = pods.Create(ctx, pull, metav1.CreateOptions{})
		if strings.Contains(fmt.Sprint(err), "is not registered") {
			return err.Error()
		}
		return ""
	})
	refused(t, "a mirror Pod with a pull secret", err,
		"can only create pods that reference nothing of the API, not secrets s")
	driver := mirror("driver", registered.UID)
	driver.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: "d.example", NodePublishSecretRef: &corev1.LocalObjectReference{Name: "s"},
	}}}}
	_, err = pods.Create(ctx, driver, metav1.CreateOptions{})
	refused(t, "a mirror Pod with a driver's secret", err, "not secrets s")
	orphan := mirror("orphan", registered.UID)
	orphan.OwnerReferences = nil
	_, err = pods.Create(ctx, orphan, metav1.CreateOptions{})
	refused(t, "a mirror Pod without an owner", err, "a single owner reference set to itself")
	noSecret("after the refusals")

	if _, err := pods.Create(ctx, mirror("static", registered.UID), metav1.CreateOptions{}); err != nil {
		t.Fatalf("a mirror Pod that names nothing: %v", err)
	}
	// A user with the right to may make a mirror Pod that names a Secret: it opens nothing, and stays a mirror.
	if _, err := s.Client.CoreV1().Pods("kube-system").Create(ctx, pull, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating a mirror Pod as an administrator: %v", err)
	}
	noSecret("that a mirror Pod names")
	unmark := []byte(`{"metadata":{"annotations":{"kubernetes.io/config.mirror":null}}}`)
	for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
		_, err = pods.Patch(ctx, "pull", kind, unmark, metav1.PatchOptions{}, "status")
		staysMirror(t, fmt.Sprintf("a %s of the status", kind), err)
	}
	for _, subresource := range [][]string{nil, {"status"}} {
		_, err = s.Client.CoreV1().Pods("kube-system").Patch(ctx, "pull", types.MergePatchType, unmark,
			metav1.PatchOptions{}, subresource...)
		staysMirror(t, fmt.Sprintf("an administrator's patch of %v", subresource), err)
	}
	noSecret("in the end")
}

func staysMirror(t *testing.T, what string, err error) {
	t.Helper()
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) || !strings.Contains(fmt.Sprint(err), "config.mirror") {
		t.Errorf("%s that takes the mark of a mirror Pod away: %v, want it refused", what, err)
	}
}

// mirror is what node-1 may create when its own UID is the one given.
func mirror(name string, owner types.UID) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"kubernetes.io/config.mirror": "hash"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "node-1", UID: owner,
				Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}
