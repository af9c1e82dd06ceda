package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

const (
	// memberLabel marks the Leases of the apiservers.
	memberLabel = "apiserver.keelson.dev/member"
	// An apiserver that died leaves the Endpoints when its Lease has run out and another one looks: after at most both
	// together. The field's Leases hold for 15 seconds too.
	memberSeconds = 15
	renewInterval = 5 * time.Second
	leaveTimeout  = 2 * time.Second
)

// RunMember renews this apiserver's entry in the Endpoints of the Service, beside
// the other apiservers on the same store, until ctx ends. The entry itself is made
// with the other objects, before the server is ready.
func (b *Bootstrapper) RunMember(ctx context.Context) {
	ticker := time.NewTicker(renewInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := b.renew(ctx); err != nil && ctx.Err() == nil {
			b.Log.Warn("renewing the apiserver's address", zap.Error(err))
		}
	}
}

// Leave takes the entry away. It runs while the server still serves. A failure
// is logged and no more: the Lease runs out by itself.
func (b *Bootstrapper) Leave() error {
	if !b.Address.IsValid() {
		return nil
	}
	if err := b.leave(); err != nil {
		b.Log.Warn("leaving the apiservers", zap.Error(err))
	}
	return nil
}

func (b *Bootstrapper) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	err := b.Client.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, b.leaseName(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the Lease: %w", err)
	}
	return b.ensureEndpoints(ctx)
}

// renew makes or renews the entry.
func (b *Bootstrapper) renew(ctx context.Context) error {
	if !b.Address.IsValid() {
		return nil
	}
	client := b.Client.CoordinationV1().Leases(metav1.NamespaceSystem)
	lease, err := client.Get(ctx, b.leaseName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: b.leaseName(),
			Labels: map[string]string{memberLabel: "true"}}}
	} else if err != nil {
		return fmt.Errorf("reading the Lease: %w", err)
	}
	lease.Spec.HolderIdentity = ptr.To(b.Address.String())
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(memberSeconds))
	lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
	if lease.UID == "" {
		_, err = client.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = client.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("renewing the Lease: %w", err)
	}
	return b.ensureEndpoints(ctx)
}

// ensureEndpoints makes the Endpoints those of the apiservers that are alive.
// Where two write at a time, the later one looks again.
func (b *Bootstrapper) ensureEndpoints(ctx context.Context) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return b.enterAlive(ctx) })
}

func (b *Bootstrapper) enterAlive(ctx context.Context) error {
	leases := b.Client.CoordinationV1().Leases(metav1.NamespaceSystem)
	list, err := leases.List(ctx, metav1.ListOptions{LabelSelector: memberLabel + "=true"})
	if err != nil {
		return fmt.Errorf("listing the apiservers: %w", err)
	}
	alive, expired := members(list.Items, time.Now())
	var errs []error
	for _, name := range expired {
		if err := leases.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("removing the Lease %s: %w", name, err))
		}
	}
	if err := b.writeEndpoints(ctx, alive); err != nil {
		return err
	}
	if err := b.writeSlices(ctx, alive); err != nil {
		return err
	}
	return errors.Join(errs...)
}

func (b *Bootstrapper) writeEndpoints(ctx context.Context, alive []netip.AddrPort) error {
	client := b.Client.CoreV1().Endpoints(metav1.NamespaceDefault)
	have, err := client.Get(ctx, serviceName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, endpoints(alive), metav1.CreateOptions{})
		return describe("Endpoints", serviceName, err)
	}
	if err != nil {
		return describe("Endpoints", serviceName, err)
	}
	want := subsets(alive)
	if apiequality.Semantic.DeepEqual(have.Subsets, want) {
		return nil
	}
	changed := have.DeepCopy()
	changed.Subsets = want
	_, err = client.Update(ctx, changed, metav1.UpdateOptions{})
	return describe("Endpoints", serviceName, err)
}

// writeSlices makes the EndpointSlices those of the addresses. New ones come before old ones go, so that there is an
// apiserver to be found all the time.
func (b *Bootstrapper) writeSlices(ctx context.Context, alive []netip.AddrPort) error {
	client := b.Client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	selector := labels.Set{discoveryv1.LabelServiceName: serviceName, discoveryv1.LabelManagedBy: slicesManager}
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return fmt.Errorf("listing the EndpointSlices of the apiservers: %w", err)
	}
	plan := decideSlices(alive, list.Items)
	for _, slice := range plan.create {
		_, err := client.Create(ctx, slice, metav1.CreateOptions{})
		if err := describe("EndpointSlice", slice.Name, err); err != nil {
			return err
		}
	}
	for _, slice := range plan.update {
		if _, err := client.Update(ctx, slice, metav1.UpdateOptions{}); err != nil {
			return describe("EndpointSlice", slice.Name, err)
		}
	}
	for _, name := range plan.remove {
		if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("removing the EndpointSlice %s: %w", name, err)
		}
	}
	return nil
}

// leaseName is one name per address and port.
func (b *Bootstrapper) leaseName() string {
	host := strings.NewReplacer(".", "-", ":", "-", "%", "-").Replace(b.Address.Addr().String())
	return "apiserver." + strings.Trim(host, "-") + "." + strconv.Itoa(int(b.Address.Port()))
}

// endpoints are the Endpoints of the Service of the apiservers.
func endpoints(addresses []netip.AddrPort) *corev1.Endpoints {
	return &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{
			Name: serviceName, Namespace: metav1.NamespaceDefault,
			// The apiservers write the EndpointSlices themselves.
			Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"},
		},
		Subsets: subsets(addresses),
	}
}
