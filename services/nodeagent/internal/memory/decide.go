package memory

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Machine is what the rules depend on of a machine. All amounts are in bytes.
type Machine struct {
	// CgroupV2 means that it has the unified hierarchy.
	CgroupV2 bool
	// Memory is its memory, Allocatable the part that Pods may request, Swap its swap.
	Memory, Allocatable, Swap int64
	// PageSize is the kernel's unit of memory.
	PageSize int64
}

// Rules are the settings as they apply on a machine. The zero Rules write nothing.
type Rules struct {
	machine Machine
	// swap is the swap in bytes that containers share in proportion to their requests; 0 means that they get none.
	swap int64
	// factor is 0 if containers are not throttled.
	factor float64
	// reserves means that the kernel protects requested memory.
	reserves bool
	// killsWhole means that the kernel kills all processes of a container that is out of memory.
	killsWhole bool
	// limitsSwap means that the kernel has a limit for swap.
	limitsSwap bool
	// isStatic reports whether a Pod comes from a file of the node; nil means that none does.
	isStatic func(types.UID) bool
}

// Rules returns what the settings, which must be valid, mean on a machine; an error if the machine cannot do it.
func (s *Settings) Rules(m Machine) (Rules, error) {
	factor, err := s.factor()
	if err != nil {
		return Rules{}, err
	}
	single, err := s.singleKill()
	if err != nil {
		return Rules{}, err
	}
	if s.FailSwapOn && m.Swap > 0 {
		return Rules{}, fmt.Errorf("--fail-swap-on: this machine has %d MiB of swap on: end it with swapoff -a and a "+
			"line less in /etc/fstab, or start with --fail-swap-on=false", m.Swap>>20)
	}
	if flag := s.needsV2(factor, single); flag != "" && !m.CgroupV2 {
		return Rules{}, fmt.Errorf("%s needs cgroups of version 2, and this machine has version 1", flag)
	}
	r := Rules{machine: m, factor: factor, reserves: s.Tiered()}
	r.killsWhole = m.CgroupV2 && (single == nil || !*single)
	if s.SwapBehavior == limitedSwap {
		r.swap = m.Swap
	}
	return r, nil
}

// needsV2 returns the first setting that only the unified hierarchy can hold; empty if there is none.
func (s *Settings) needsV2(factor float64, single *bool) string {
	switch {
	case s.SwapBehavior == limitedSwap:
		return "--memory-swap-behavior: " + limitedSwap
	case factor > 0:
		return "--memory-throttling-factor"
	case s.Tiered():
		return "--memory-reservation-policy: " + reserveTiered
	case single != nil && !*single:
		return "--single-process-oom-kill: false"
	}
	return ""
}

// OnKernel returns the rules for a kernel that can limit swap, or that cannot: swap accounting may be off.
func (r Rules) OnKernel(limitsSwap bool) (Rules, error) {
	r.limitsSwap = limitsSwap
	if r.swap > 0 && !limitsSwap {
		return Rules{}, errors.New("--memory-swap-behavior: LimitedSwap needs a kernel that limits swap, and this " +
			"one has no memory.swap.max (swapaccount=0 on its command line switches it off)")
	}
	return r, nil
}

// WithStatic returns the rules with the knowledge of which Pods are static, that is, critical.
func (r Rules) WithStatic(isStatic func(types.UID) bool) Rules {
	r.isStatic = isStatic
	return r
}

// SharesSwap reports whether some containers may get swap.
func (r Rules) SharesSwap() bool { return r.swap > 0 }

// Reserves reports whether the kernel protects requested memory.
func (r Rules) Reserves() bool { return r.reserves }

// amounts returns the memory in bytes that a container requests and its own limit; 0 for those that it lacks.
func amounts(container *corev1.Container) (request, limit int64) {
	return container.Resources.Requests.Memory().Value(), container.Resources.Limits.Memory().Value()
}
