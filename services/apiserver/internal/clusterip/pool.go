// Package clusterip gives out the cluster IPs of Services. Who has which address stands in IPAddress objects, one for
// each: whoever creates the object has the address, so several apiservers agree with one write and without waiting for
// each other. Out of which ranges addresses come, ServiceCIDRs say.
//
//	decide_block.go     which address is next (pure)
//	decide_repair.go    what differs between Services and addresses (pure)
//	pool.go             takes addresses and gives them back
package clusterip

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/alloc"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// blindTries is how often an address is tried without a look at which are taken.
const blindTries = 3

// errNotOwner ends a delete of an address that belongs to another owner by now.
var errNotOwner = errors.New("the address has another owner")

// Pool is where addresses come from. It is of use when both stores are open.
type Pool struct {
	configured        []netip.Prefix
	addresses, ranges *rest.Storage
	start             func(int) int
}

// NewPool returns the pool of an apiserver that is configured with the ranges, one of each family at most.
func NewPool(configured []netip.Prefix) *Pool { return &Pool{configured: configured, start: rand.IntN} }

// OpenAddresses and OpenRanges take the stores of IPAddresses and of ServiceCIDRs.
func (p *Pool) OpenAddresses(s *rest.Storage) genericrest.Storage {
	p.addresses = s
	return s
}

// OpenRanges takes the store of ServiceCIDRs.
func (p *Pool) OpenRanges(s *rest.Storage) genericrest.Storage {
	p.ranges = s
	return s
}

// Families are those that Services may have, the one that they have by default first.
func (p *Pool) Families() []corev1.IPFamily {
	var all []corev1.IPFamily
	for _, prefix := range p.configured {
		all = append(all, FamilyOf(prefix.Addr()))
	}
	return all
}

// Ranges are those that addresses are given out of now.
func (p *Pool) Ranges(ctx context.Context) ([]netip.Prefix, error) {
	list, err := p.ranges.List(clusterWide(ctx), &internalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("listing the ServiceCIDRs: %w", err)
	}
	return usable(list.(*networkingv1.ServiceCIDRList).Items, p.configured), nil
}

// Take takes one certain address: alloc.ErrTaken if another owner has it, an Outside error if it is in no range.
func (p *Pool) Take(ctx context.Context, ip netip.Addr, owner Owner, dryRun bool) error {
	ranges, err := p.Ranges(ctx)
	if err != nil {
		return err
	}
	inside := func(prefix netip.Prefix) bool { return blockOf(prefix).has(ip) }
	if !slices.ContainsFunc(ranges, inside) {
		return &OutsideError{Ranges: ranges}
	}
	return p.create(ctx, newAddress(ip, owner), dryRun)
}

// OutsideError is why an address that is in no range is not given out.
type OutsideError struct{ Ranges []netip.Prefix }

// Error implements error.
func (e *OutsideError) Error() string {
	var all []string
	for _, prefix := range e.Ranges {
		all = append(all, prefix.String())
	}
	return "provided IP is not in the valid range. The range of valid IPs is " + strings.Join(all, ",")
}

// TakeNext takes any free address of the family; alloc.ErrFull if there is none.
func (p *Pool) TakeNext(ctx context.Context, family corev1.IPFamily, owner Owner, dryRun bool) (netip.Addr, error) {
	ranges, err := p.Ranges(ctx)
	if err != nil {
		return netip.Addr{}, err
	}
	var blocks []block
	for _, prefix := range ranges {
		if FamilyOf(prefix.Addr()) == family {
			blocks = append(blocks, blockOf(prefix))
		}
	}
	taken := map[netip.Addr]bool{}
	for try := 0; ; try++ {
		if try == blindTries {
			if err := p.addTaken(ctx, taken); err != nil {
				return netip.Addr{}, err
			}
		}
		ip, found := pick(blocks, taken, p.start)
		if !found {
			return netip.Addr{}, alloc.ErrFull
		}
		err := p.create(ctx, newAddress(ip, owner), dryRun)
		if !errors.Is(err, alloc.ErrTaken) {
			return ip, err
		}
		taken[ip] = true
	}
}

// addTaken adds the addresses that the watch cache knows. One that was released meanwhile is given out another time.
func (p *Pool) addTaken(ctx context.Context, taken map[netip.Addr]bool) error {
	addresses, err := p.list(ctx, "0")
	for i := range addresses {
		if ip, err := netip.ParseAddr(addresses[i].Name); err == nil {
			taken[ip] = true
		}
	}
	return err
}

// Addresses are all that are taken now.
func (p *Pool) Addresses(ctx context.Context) ([]networkingv1.IPAddress, error) {
	return p.list(ctx, "")
}

func (p *Pool) list(ctx context.Context, resourceVersion string) ([]networkingv1.IPAddress, error) {
	list, err := p.addresses.List(clusterWide(ctx), &internalversion.ListOptions{ResourceVersion: resourceVersion})
	if err != nil {
		return nil, fmt.Errorf("listing the IPAddresses: %w", err)
	}
	return list.(*networkingv1.IPAddressList).Items, nil
}

func (p *Pool) create(ctx context.Context, address *networkingv1.IPAddress, dryRun bool) error {
	options := &metav1.CreateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	err := failpoint.Around("apiserver/ipaddress.create", func() error {
		_, err := p.addresses.Create(clusterWide(ctx), address, genericrest.ValidateAllObjectFunc, options)
		return err
	})
	switch {
	case apierrors.IsAlreadyExists(err):
		return alloc.ErrTaken
	case err != nil:
		return fmt.Errorf("creating the IPAddress %s: %w", address.Name, err)
	}
	return nil
}

// Release gives addresses of the owner back; those that it does not have stay.
func (p *Pool) Release(ctx context.Context, owner Owner, ips ...netip.Addr) error {
	var errs []error
	for _, ip := range ips {
		errs = append(errs, p.remove(ctx, ip.String(), func(a *networkingv1.IPAddress) bool {
			return managed(a) && parentOf(a) == owner
		}))
	}
	return errors.Join(errs...)
}

// Apply carries out a repair.
func (p *Pool) Apply(ctx context.Context, r Repair) error {
	var errs []error
	for _, address := range r.Remove {
		errs = append(errs, p.remove(ctx, address.Name, func(a *networkingv1.IPAddress) bool {
			return a.UID == address.UID
		}))
	}
	for _, address := range r.Create {
		if err := p.create(ctx, address.DeepCopy(), false); !errors.Is(err, alloc.ErrTaken) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (p *Pool) remove(ctx context.Context, name string, wanted func(*networkingv1.IPAddress) bool) error {
	check := func(_ context.Context, obj runtime.Object) error {
		if address, ok := obj.(*networkingv1.IPAddress); !ok || !wanted(address) {
			return errNotOwner
		}
		return nil
	}
	_, _, err := p.addresses.Delete(clusterWide(ctx), name, check, &metav1.DeleteOptions{})
	if err == nil || apierrors.IsNotFound(err) || errors.Is(err, errNotOwner) {
		return nil
	}
	return fmt.Errorf("deleting the IPAddress %s: %w", name, err)
}

// clusterWide is the request's context without the namespace of the Service.
func clusterWide(ctx context.Context) context.Context {
	return genericapirequest.WithNamespace(ctx, metav1.NamespaceNone)
}
