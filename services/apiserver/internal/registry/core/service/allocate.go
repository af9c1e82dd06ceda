package service

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/services/apiserver/internal/alloc"
)

// ranges are what Services are given from.
type ranges struct {
	ips   *alloc.IPs
	ports *alloc.Ports
}

func (r *ranges) family() corev1.IPFamily {
	if r.ips.Prefix().Addr().Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// reservation is what one request has taken. It lives as long as the request and is kept when the store calls for the
// same update again, so that a retry does not take twice.
type reservation struct {
	ranges *ranges
	dryRun bool
	ips    []netip.Addr
	ports  []int32
}

// complete gives s what it needs beyond what old, nil for a new Service, has. Errors name the fields.
func (r *reservation) complete(ctx context.Context, s, old *corev1.Service) field.ErrorList {
	if old != nil {
		inherit(s, old)
		dropDependents(s, old)
	}
	normalize(s, old)
	setFamily(&s.Spec, r.ranges.family())
	c := decideClaims(s, old)
	errs := r.takeIP(ctx, &s.Spec, c)
	for _, claim := range c.ports {
		errs = append(errs, r.takePort(ctx, &s.Spec, claim)...)
	}
	return errs
}

func (r *reservation) takeIP(ctx context.Context, spec *corev1.ServiceSpec, c claims) field.ErrorList {
	path := field.NewPath("spec", "clusterIPs").Index(0)
	switch {
	case c.anyIP && len(r.ips) > 0:
		setClusterIP(spec, r.ips[0])
	case c.anyIP:
		ip, err := r.ranges.ips.TakeNext(ctx, r.dryRun)
		if err != nil {
			return field.ErrorList{field.InternalError(path, fmt.Errorf("failed to allocate a cluster IP: %w", err))}
		}
		r.ips = append(r.ips, ip)
		setClusterIP(spec, ip)
	case c.ip != "":
		ip, err := netip.ParseAddr(c.ip)
		if err != nil || slices.Contains(r.ips, ip) {
			// What is no address is for the validation to refuse.
			return nil
		}
		if err := r.ranges.ips.Take(ctx, ip, r.dryRun); err != nil {
			return field.ErrorList{refusal(path, c.ip, fmt.Sprintf("failed to allocate IP %s: ", c.ip), "IP",
				r.ranges.ips.Prefix().String(), err)}
		}
		r.ips = append(r.ips, ip)
	}
	return nil
}

func setClusterIP(spec *corev1.ServiceSpec, ip netip.Addr) {
	spec.ClusterIP = ip.String()
	spec.ClusterIPs = []string{spec.ClusterIP}
}

func (r *reservation) takePort(ctx context.Context, spec *corev1.ServiceSpec, claim portClaim) field.ErrorList {
	path, target := field.NewPath("spec", "healthCheckNodePort"), &spec.HealthCheckNodePort
	if claim.index != healthCheckIndex {
		path, target = field.NewPath("spec", "ports").Index(claim.index).Child("nodePort"),
			&spec.Ports[claim.index].NodePort
	}
	if claim.port == 0 {
		port, err := r.anyPort(ctx, spec)
		if err != nil {
			return field.ErrorList{field.InternalError(path, fmt.Errorf("failed to allocate a nodePort: %w", err))}
		}
		*target = port
		return nil
	}
	if slices.Contains(r.ports, claim.port) {
		return nil
	}
	if err := r.ranges.ports.Take(ctx, int(claim.port), r.dryRun); err != nil {
		valid := fmt.Sprintf("%d-%d", r.ranges.ports.First, r.ranges.ports.Last)
		return field.ErrorList{refusal(path, claim.port, "", "port", valid, err)}
	}
	r.ports = append(r.ports, claim.port)
	return nil
}

// anyPort returns a port that an earlier try of this request has taken and the spec does not use yet, or takes one.
func (r *reservation) anyPort(ctx context.Context, spec *corev1.ServiceSpec) (int32, error) {
	used := nodePorts(spec)
	for _, port := range r.ports {
		if !slices.Contains(used, port) {
			return port, nil
		}
	}
	port, err := r.ranges.ports.TakeNext(ctx, r.dryRun)
	if err != nil {
		return 0, err
	}
	r.ports = append(r.ports, int32(port))
	return int32(port), nil
}

func refusal(path *field.Path, value any, prefix, what, valid string, err error) *field.Error {
	switch {
	case errors.Is(err, alloc.ErrTaken):
		return field.Invalid(path, value, prefix+"provided "+what+" is already allocated")
	case errors.Is(err, alloc.ErrOutside):
		return field.Invalid(path, value,
			fmt.Sprintf("%sprovided %s is not in the valid range. The range of valid %ss is %s", prefix, what, what,
				valid))
	}
	return field.InternalError(path, err)
}

// release gives back what the request has taken, and what old had, except what stored, nil if the request failed, uses.
func (r *reservation) release(ctx context.Context, stored, old *corev1.Service) error {
	if r.dryRun {
		return nil
	}
	offsets := offsetsOf(r.ranges, r.ips, r.ports)
	if stored != nil {
		if old != nil {
			offsets = offsets.plus(held(r.ranges, old))
		}
		offsets = offsets.minus(held(r.ranges, stored))
	}
	return offsets.release(ctx, r.ranges)
}

// offsets are places in the two ranges.
type offsets struct{ ips, ports []int }

// held is what a stored Service has.
func held(r *ranges, s *corev1.Service) offsets {
	var ips []netip.Addr
	for _, text := range s.Spec.ClusterIPs {
		if ip, err := netip.ParseAddr(text); err == nil {
			ips = append(ips, ip)
		}
	}
	return offsetsOf(r, ips, nodePorts(&s.Spec))
}

func offsetsOf(r *ranges, ips []netip.Addr, ports []int32) offsets {
	var o offsets
	for _, ip := range ips {
		if offset, ok := r.ips.Offset(ip); ok {
			o.ips = append(o.ips, offset)
		}
	}
	for _, port := range ports {
		if offset, ok := r.ports.Offset(int(port)); ok {
			o.ports = append(o.ports, offset)
		}
	}
	return o
}

func (o offsets) plus(other offsets) offsets {
	return offsets{append(slices.Clone(o.ips), other.ips...), append(slices.Clone(o.ports), other.ports...)}
}

func (o offsets) minus(other offsets) offsets {
	without := func(from, what []int) []int {
		return slices.DeleteFunc(slices.Clone(from), func(offset int) bool { return slices.Contains(what, offset) })
	}
	return offsets{without(o.ips, other.ips), without(o.ports, other.ports)}
}

func (o offsets) release(ctx context.Context, r *ranges) error {
	return errors.Join(r.ips.Release(ctx, o.ips...), r.ports.Release(ctx, o.ports...))
}
