package servicecidr

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/write"
)

// pageSize is how many addresses are read at once.
const pageSize = 500

// Controller looks after ServiceCIDRs. It needs no gate: each write carries the resource version that it is about.
type Controller struct {
	reader client.Reader // the cache
	live   client.Reader
	writer *write.Writer
}

// steps are what a pass over a ServiceCIDR consists of.
func (c *Controller) steps() *pass.Steps[*networkingv1.ServiceCIDR, Input, Plan] {
	return &pass.Steps[*networkingv1.ServiceCIDR, Input, Plan]{
		Reader: c.reader, New: func() *networkingv1.ServiceCIDR { return &networkingv1.ServiceCIDR{} },
		Observe: c.observe, Decide: Decide, Apply: c.apply,
		After: func(_ Input, plan Plan) time.Duration { return plan.After },
	}
}

func (c *Controller) observe(ctx context.Context, r *networkingv1.ServiceCIDR) (Input, bool, error) {
	in := Input{Range: r, Now: time.Now()}
	if !asksForAddresses(r, in.Now) {
		return in, true, nil
	}
	ranges := &networkingv1.ServiceCIDRList{}
	if err := c.reader.List(ctx, ranges); err != nil {
		return in, false, fmt.Errorf("listing the ServiceCIDRs: %w", err)
	}
	for i := range ranges.Items {
		if ranges.Items[i].UID != r.UID {
			in.Others = append(in.Others, &ranges.Items[i])
		}
	}
	var err error
	in.Addresses, err = c.taken(ctx)
	return in, err == nil, err
}

// taken reads the addresses in use from the apiserver: an address missing from a cache would let the range go.
func (c *Controller) taken(ctx context.Context) ([]netip.Addr, error) {
	var all []netip.Addr
	for next := ""; ; {
		page := &networkingv1.IPAddressList{}
		if err := c.live.List(ctx, page, client.Limit(pageSize), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("listing the IPAddresses: %w", err)
		}
		for i := range page.Items {
			if ip, err := netip.ParseAddr(page.Items[i].Name); err == nil {
				all = append(all, ip)
			}
		}
		if next = page.Continue; next == "" {
			return all, nil
		}
	}
}

// apply carries out the plan. It writes the condition before it removes the finalizer.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	if plan.Hold {
		held := in.Range.DeepCopy()
		held.Finalizers = append(held.Finalizers, finalizer)
		return client.IgnoreNotFound(c.writer.Update(ctx, in.Range.UID, held))
	}
	status := func(r *networkingv1.ServiceCIDR) *networkingv1.ServiceCIDRStatus { return &r.Status }
	written, err := write.Status(ctx, c.writer, in.Range, plan.Status, status)
	if err != nil || !plan.Release {
		return err
	}
	if written {
		return pass.ErrStale
	}
	free := in.Range.DeepCopy()
	free.Finalizers = slices.DeleteFunc(free.Finalizers, func(f string) bool { return f == finalizer })
	return client.IgnoreNotFound(c.writer.Update(ctx, in.Range.UID, free))
}
