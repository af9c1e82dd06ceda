package authz_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// A node that was taken over claims what another node has, when it registers and later on, in all that it may write.
func TestNodesDoNotTakeWhatOthersHave(t *testing.T) {
	authority := servertest.NewAuthority(t)
	s := servertest.Start(t, authority.Trusted(t))
	ctx := t.Context()
	older := authority.Client(t, s, "system:node:older", "system:nodes").CoreV1().Nodes()
	younger := authority.Client(t, s, "system:node:younger", "system:nodes").CoreV1().Nodes()
	node := func(name, cidr string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDR: cidr}}
	}
	// Without a controller that allocates ranges, a node has that of its flag.
	if _, err := older.Create(ctx, node("older", "10.244.1.0/24"), metav1.CreateOptions{}); err != nil {
		t.Fatalf("registering with a range: %v", err)
	}
	status := func(address string) []byte {
		return fmt.Appendf(nil, `{"status":{"addresses":[{"type":"InternalIP","address":%q}]}}`, address)
	}
	patch := func(body []byte, subresources ...string) error {
		_, err := younger.Patch(
			ctx,
			"younger",
			types.StrategicMergePatchType,
			body,
			metav1.PatchOptions{},
			subresources...)
		return err
	}
	if _, err := older.Patch(ctx, "older", types.StrategicMergePatchType, status("192.0.2.1"), metav1.PatchOptions{},
		"status"); err != nil {
		t.Fatalf("telling an address: %v", err)
	}
	// Who decides reads Nodes from a watch, which the answer to a write does not wait for: only the last write is
	// waited for.
	register := func(cidr, address string) error {
		claiming := node("younger", cidr)
		if address != "" {
			claiming.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		}
		_, err := younger.Create(ctx, claiming, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	eventually := func(what string, call func() error, want string) {
		t.Helper()
		servertest.Eventually(t, what, func(context.Context) string {
			if err := call(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
				return fmt.Sprint(err)
			}
			return ""
		})
	}
	const ofOlder = `of node "older"`
	eventually("registering with another's address is refused", func() error { return register("", "192.0.2.1") },
		`the address 192.0.2.1: it is that `+ofOlder)
	refused(t, "registering with another's range", register("10.244.1.0/25", ""), "it overlaps 10.244.1.0/24 "+ofOlder)
	if _, err := younger.Create(ctx, node("younger", ""), metav1.CreateOptions{}); err != nil {
		t.Fatalf("registering: %v", err)
	}
	refused(t, "taking another's range later on", patch([]byte(`{"spec":{"podCIDR":"10.244.1.0/24"}}`)), ofOlder)
	refused(t, "taking another's address", patch(status("192.0.2.1"), "status"), ofOlder)
	refused(
		t,
		"taking a Pod's address",
		patch(status("10.244.1.7"), "status"),
		"the range of Pods 10.244.1.0/24 "+ofOlder,
	)
	if err := patch(status("192.0.2.2"), "status"); err != nil {
		t.Errorf("an address of its own: %v", err)
	}
	if _, err := s.Client.CoreV1().Nodes().Patch(ctx, "older", types.StrategicMergePatchType,
		[]byte(`{"spec":{"providerID":"cloud://older"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatalf("naming the older node: %v", err)
	}
	eventually("taking another's providerID is refused", func() error {
		_, err := younger.Patch(ctx, "younger", types.StrategicMergePatchType, []byte(
			`{"spec":{"providerID":"cloud://older"}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}, ofOlder)

	// With such a controller, a node takes none by itself, be it free or not.
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "workload-controllers.nodeipam"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("pod-1")}}
	if _, err := s.Client.CoordinationV1().Leases(
		"kube-system",
	).Create(
		ctx,
		lease,
		metav1.CreateOptions{},
	); err != nil {
		t.Fatalf("leading: %v", err)
	}
	free := []byte(`{"spec":{"podCIDR":"10.244.2.0/24"}}`)
	eventually("giving itself a range is refused", func() error {
		_, err := younger.Patch(ctx, "younger", types.StrategicMergePatchType, free,
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}, "the controller nodeipam (pod-1, holder of the Lease kube-system/workload-controllers.nodeipam) gives")
	if _, err := s.Client.CoreV1().Nodes().Patch(ctx, "younger", types.StrategicMergePatchType, free,
		metav1.PatchOptions{}); err != nil {
		t.Errorf("being given a range: %v", err)
	}
	if err := patch(status("192.0.2.3"), "status"); err != nil {
		t.Errorf("reporting with a range that was given: %v", err)
	}
}
