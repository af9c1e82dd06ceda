package bootstrap

import (
	"context"
	"slices"

	"go.uber.org/zap"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/clusterip"
)

// cidrFinalizer keeps a ServiceCIDR whose addresses are in use.
const cidrFinalizer = "networking.k8s.io/service-cidr-finalizer"

// ensureServiceCIDR makes the ServiceCIDR of the configured ranges. One that is there stays as it is, but for a range
// of the second family that was configured later.
func (b *Bootstrapper) ensureServiceCIDR(ctx context.Context) error {
	client := b.Client.NetworkingV1().ServiceCIDRs()
	have, err := client.Get(ctx, clusterip.DefaultRange, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		have, err = client.Create(ctx, b.serviceCIDR(), metav1.CreateOptions{})
	}
	if err != nil {
		return describe("ServiceCIDR", clusterip.DefaultRange, err)
	}
	if have.DeletionTimestamp != nil {
		return nil
	}
	want := b.serviceCIDR().Spec.CIDRs
	switch {
	case slices.Equal(have.Spec.CIDRs, want):
	case len(have.Spec.CIDRs) == 1 && len(want) == 2 && have.Spec.CIDRs[0] == want[0]:
		grown := have.DeepCopy()
		grown.Spec.CIDRs = want
		if have, err = client.Update(ctx, grown, metav1.UpdateOptions{}); err != nil {
			return describe("ServiceCIDR", clusterip.DefaultRange, err)
		}
	case !b.Done():
		b.Log.Warn("the ServiceCIDR "+clusterip.DefaultRange+" is not what --service-cluster-ip-range says, and it is "+
			"what counts", zap.Strings("cidrs", have.Spec.CIDRs), zap.Strings("configured", want))
	}
	if len(have.Status.Conditions) > 0 {
		return nil
	}
	ready := have.DeepCopy()
	ready.Status.Conditions = []metav1.Condition{{Type: networkingv1.ServiceCIDRConditionReady,
		Status: metav1.ConditionTrue, Reason: "Default", Message: "Kubernetes default Service CIDR is ready",
		LastTransitionTime: metav1.Now()}}
	_, err = client.UpdateStatus(ctx, ready, metav1.UpdateOptions{})
	return describe("ServiceCIDR", clusterip.DefaultRange, err)
}

func (b *Bootstrapper) serviceCIDR() *networkingv1.ServiceCIDR {
	c := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: clusterip.DefaultRange,
		Finalizers: []string{cidrFinalizer}}}
	for _, prefix := range b.ServiceRanges {
		c.Spec.CIDRs = append(c.Spec.CIDRs, prefix.String())
	}
	return c
}
