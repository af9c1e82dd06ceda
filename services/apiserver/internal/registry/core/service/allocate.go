package service

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"keelson.dev/services/apiserver/internal/alloc"
	"keelson.dev/services/apiserver/internal/clusterip"
)

// ranges are what Services are given from.
type ranges struct {
	ips   *clusterip.Pool
	ports *alloc.Ports
}

// reservation is what one request has taken. It lives as long as the request and is kept when the store calls for the
// same update again, so that a retry does not take twice.
type reservation struct {
	ranges *ranges
	dryRun bool
	owner  clusterip.Owner
	ips    []netip.Addr
	ports  []int32
}

// complete gives s what it needs beyond what old, nil for a new Service, has, and returns all that is wrong with it. A
// Service that is not valid gets nothing: of what it asks for by number it is only said whether it could be had.
func (r *reservation) complete(ctx context.Context, s, old *corev1.Service) field.ErrorList {
	if old != nil {
		inherit(s, old)
		dropDependents(s, old)
	}
	normalize(s, old)
	errs := settleFamilies(s, old, r.ranges.ips.Families())
	invalid := validate(s, old)
	r.owner = clusterip.Owner{Namespace: genericapirequest.NamespaceValue(ctx), Name: s.Name}
	c, taker := decideClaims(s, old), r
	if len(errs)+len(invalid) > 0 {
		c = c.certain()
		taker = &reservation{ranges: r.ranges, dryRun: true, owner: r.owner, ips: r.ips, ports: r.ports}
	}
	if len(errs) > 0 {
		c.ips = nil // what is said of the families is said of them
	}
	for _, claim := range c.ips {
		errs = append(errs, taker.takeIP(ctx, &s.Spec, claim)...)
	}
	for _, claim := range c.ports {
		errs = append(errs, taker.takePort(ctx, &s.Spec, claim)...)
	}
	return append(invalid, errs...)
}

func validate(s, old *corev1.Service) field.ErrorList {
	if old == nil {
		return Validate(s)
	}
	return ValidateUpdate(s, old)
}

func (r *reservation) takeIP(ctx context.Context, spec *corev1.ServiceSpec, claim ipClaim) field.ErrorList {
	path := field.NewPath("spec", "clusterIPs").Index(claim.index)
	if claim.ip == "" {
		ip, err := r.anyIP(ctx, spec, claim.family)
		if err != nil {
			return field.ErrorList{field.InternalError(path, fmt.Errorf("failed to allocate a cluster IP: %w", err))}
		}
		setClusterIP(spec, ip)
		return nil
	}
	ip, err := netip.ParseAddr(claim.ip)
	if err != nil || slices.Contains(r.ips, ip) {
		// What is no address is for the validation to refuse.
		return nil
	}
	if err := r.ranges.ips.Take(ctx, ip, r.owner, r.dryRun); err != nil {
		return field.ErrorList{refusedIP(path, claim.ip, err)}
	}
	r.ips = append(r.ips, ip)
	return nil
}

// anyIP returns an address that an earlier try of this request has taken and the spec does not use yet, or takes one.
func (r *reservation) anyIP(ctx context.Context, spec *corev1.ServiceSpec, family corev1.IPFamily) (netip.Addr, error) {
	for _, ip := range r.ips {
		if clusterip.FamilyOf(ip) == family && !slices.Contains(spec.ClusterIPs, ip.String()) {
			return ip, nil
		}
	}
	ip, err := r.ranges.ips.TakeNext(ctx, family, r.owner, r.dryRun)
	if err == nil {
		r.ips = append(r.ips, ip)
	}
	return ip, err
}

// setClusterIP adds the address: those of a Service are asked for in their order.
func setClusterIP(spec *corev1.ServiceSpec, ip netip.Addr) {
	spec.ClusterIPs = append(spec.ClusterIPs, ip.String())
	spec.ClusterIP = spec.ClusterIPs[0]
}

func refusedIP(path *field.Path, value string, err error) *field.Error {
	prefix := fmt.Sprintf("failed to allocate IP %s: ", value)
	var outside *clusterip.OutsideError
	switch {
	case errors.Is(err, alloc.ErrTaken):
		return field.Invalid(path, value, prefix+"provided IP is already allocated")
	case errors.As(err, &outside):
		return field.Invalid(path, value, prefix+outside.Error())
	}
	return field.InternalError(path, err)
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
		return field.ErrorList{r.refusedPort(path, claim.port, err)}
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

func (r *reservation) refusedPort(path *field.Path, value int32, err error) *field.Error {
	switch {
	case errors.Is(err, alloc.ErrTaken):
		return field.Invalid(path, value, "provided port is already allocated")
	case errors.Is(err, alloc.ErrOutside):
		return field.Invalid(path, value, fmt.Sprintf("provided port is not in the valid range. The range of valid "+
			"ports is %d-%d", r.ranges.ports.First, r.ranges.ports.Last))
	}
	return field.InternalError(path, err)
}

// release gives back what the request has taken, and what old had, except what stored, nil if the request failed, uses.
func (r *reservation) release(ctx context.Context, stored, old *corev1.Service) error {
	if r.dryRun {
		return nil
	}
	unused := holdings{ips: slices.Clone(r.ips), ports: slices.Clone(r.ports)}
	if stored != nil {
		if old != nil {
			unused = unused.plus(held(old))
		}
		unused = unused.minus(held(stored))
	}
	return unused.release(ctx, r.ranges, r.owner)
}

// holdings are addresses and ports that a Service has.
type holdings struct {
	ips   []netip.Addr
	ports []int32
}

// held is what a stored Service has.
func held(s *corev1.Service) holdings {
	h := holdings{ports: nodePorts(&s.Spec)}
	for _, text := range s.Spec.ClusterIPs {
		if ip, err := netip.ParseAddr(text); err == nil {
			h.ips = append(h.ips, ip)
		}
	}
	return h
}

func (h holdings) plus(other holdings) holdings {
	return holdings{append(slices.Clone(h.ips), other.ips...), append(slices.Clone(h.ports), other.ports...)}
}

func (h holdings) minus(other holdings) holdings {
	return holdings{without(h.ips, other.ips),
		without(h.ports, other.ports)}
}

func without[V comparable](from, what []V) []V {
	return slices.DeleteFunc(slices.Clone(from), func(v V) bool { return slices.Contains(what, v) })
}

func (h holdings) release(ctx context.Context, r *ranges, owner clusterip.Owner) error {
	return errors.Join(r.ips.Release(ctx, owner, h.ips...), r.ports.Release(ctx, r.offsets(h.ports)...))
}

// offsets are the places of the ports in their range.
func (r *ranges) offsets(ports []int32) []int {
	var all []int
	for _, port := range ports {
		if offset, ok := r.ports.Offset(int(port)); ok {
			all = append(all, offset)
		}
	}
	return all
}
