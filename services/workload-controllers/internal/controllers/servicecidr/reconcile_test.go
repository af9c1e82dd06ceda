package servicecidr

import (
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/services/workload-controllers/internal/write"
)

// A ServiceCIDR gets the finalizer, becomes ready, stays while one of its addresses is in use, and is then removed.
func TestReconcile(t *testing.T) {
	ctx := t.Context()
	r := cidr(func(r *networkingv1.ServiceCIDR) { r.UID = "uid" })
	address := &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: "10.97.0.5"}}
	api := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(r, address).
		WithStatusSubresource(&networkingv1.ServiceCIDR{}).Build()
	c := &Controller{reader: api, live: api, writer: &write.Writer{Client: api, Kind: "servicecidr"}}
	passes := func(n int) time.Duration {
		t.Helper()
		var after time.Duration
		for range n {
			result, err := c.steps().Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r)})
			if err != nil {
				t.Fatal(err)
			}
			after = result.RequeueAfter
		}
		return after
	}
	look := func() *networkingv1.ServiceCIDR {
		t.Helper()
		now := &networkingv1.ServiceCIDR{}
		if err := api.Get(ctx, client.ObjectKeyFromObject(r), now); err != nil {
			t.Fatal(err)
		}
		return now
	}
	passes(2)
	if now := look(); len(now.Finalizers) != 1 || len(now.Status.Conditions) != 1 ||
		now.Status.Conditions[0].Status != "True" {
		t.Fatalf("after two passes: %v, %+v", now.Finalizers, now.Status)
	}
	settled := look().ResourceVersion
	passes(1)
	if look().ResourceVersion != settled {
		t.Error("a settled one is written again")
	}
	if err := api.Delete(ctx, look()); err != nil {
		t.Fatal(err)
	}
	if after := passes(1); after <= 0 || after > notice {
		t.Errorf("looks again after %s", after)
	}
	if now := look(); now.Status.Conditions[0].Status != "False" {
		t.Errorf("one that goes is %+v", now.Status)
	}
	in := Input{Range: look(), Now: time.Now().Add(time.Minute)}
	taken, err := c.taken(ctx)
	if in.Addresses = taken; err != nil || len(Decide(in).InUse) != 1 {
		t.Errorf("in use are %v, %v", Decide(in).InUse, err)
	}
	if err := api.Delete(ctx, address); err != nil {
		t.Fatal(err)
	}
	in.Addresses = nil
	if err := c.apply(ctx, in, Decide(in)); err != nil {
		t.Fatal(err)
	}
	if err := api.Get(ctx, client.ObjectKeyFromObject(r), &networkingv1.ServiceCIDR{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}
