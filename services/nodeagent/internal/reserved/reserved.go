// Package reserved defines the resources of a machine that are kept from Pods: for its system and for the daemons
// of the mesh. Its flags are the same as the kubelet's.
package reserved

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/cpuset"
)

// PIDs is the resource of process IDs, as the kubelet names it. It is reserved and limited, but no Pod requests it.
const PIDs corev1.ResourceName = "pid"

// The values of Enforce: limit all Pods together to the rest, or do not.
const (
	enforcePods = "pods"
	enforceNone = "none"
)

// names are the resources that may be reserved.
var names = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, PIDs}

// Settings are the flags.
type Settings struct {
	// System is kept for the machine's own daemons, Kube for those of the mesh.
	System, Kube map[string]string
	// CPUs names the reserved CPUs; if it is set, no other amount of cpu counts.
	CPUs string
	// Enforce lists what is limited to the rest.
	Enforce []string
}

// DefaultSettings returns the settings of a node without flags.
func DefaultSettings() Settings { return Settings{Enforce: []string{enforcePods}} }

// AddFlags adds the flags.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.StringToStringVar(&s.System, "system-reserved", s.System,
		"what of the machine is kept for its system, as RESOURCE=QUANTITY, comma-separated: cpu, memory, "+
			"ephemeral-storage, pid")
	fs.StringToStringVar(&s.Kube, "kube-reserved", s.Kube,
		"what of the machine is kept for the daemons of the mesh, as --system-reserved")
	fs.StringVar(&s.CPUs, "reserved-cpus", s.CPUs,
		"cpus that are reserved, like 0-1,4, instead of cpu in --system-reserved and --kube-reserved")
	fs.StringSliceVar(&s.Enforce, "enforce-node-allocatable", s.Enforce,
		"who is held to what is left: pods, by the limits of the cgroup of all Pods; none for nobody")
}

// Validate returns an error if the flags are invalid.
func (s *Settings) Validate() error {
	if _, err := s.Amounts(); err != nil {
		return err
	}
	if _, err := cpuset.Parse(s.CPUs); err != nil {
		return fmt.Errorf("--reserved-cpus: %q must be a list of cpus and ranges of them, like 0-1,4", s.CPUs)
	}
	for _, who := range s.Enforce {
		if who != enforcePods && who != enforceNone {
			return fmt.Errorf("--enforce-node-allocatable: %q must be %s or %s", who, enforcePods, enforceNone)
		}
	}
	if len(s.Enforce) > 1 && slices.Contains(s.Enforce, enforceNone) {
		return fmt.Errorf("--enforce-node-allocatable: %s must stand alone", enforceNone)
	}
	return nil
}

// HoldsPods reports whether all Pods together are limited.
func (s *Settings) HoldsPods() bool { return slices.Contains(s.Enforce, enforcePods) }

// Named returns the CPUs that are reserved by number; none if only an amount is set.
func (s *Settings) Named() cpuset.CPUSet {
	cpus, err := cpuset.Parse(s.CPUs)
	if err != nil {
		return cpuset.New()
	}
	return cpus
}

// Amounts returns all that is reserved, by resource.
func (s *Settings) Amounts() (corev1.ResourceList, error) {
	sum := corev1.ResourceList{}
	for _, part := range []struct {
		flag    string
		amounts map[string]string
	}{{"--system-reserved", s.System}, {"--kube-reserved", s.Kube}} {
		for _, name := range slices.Sorted(maps.Keys(part.amounts)) {
			quantity, err := parse(part.flag, name, part.amounts[name])
			if err != nil {
				return nil, err
			}
			quantity.Add(sum[corev1.ResourceName(name)])
			sum[corev1.ResourceName(name)] = quantity
		}
	}
	if n := s.Named().Size(); n > 0 {
		sum[corev1.ResourceCPU] = *resource.NewQuantity(int64(n), resource.DecimalSI)
	}
	return sum, nil
}

func parse(flag, name, text string) (resource.Quantity, error) {
	if !slices.Contains(names, corev1.ResourceName(name)) {
		return resource.Quantity{}, fmt.Errorf("%s: %q must be one of %v", flag, name, names)
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() < 0 {
		return resource.Quantity{}, fmt.Errorf("%s: %s=%q must be a quantity of at least 0, like 500m or 1Gi", flag,
			name, text)
	}
	return quantity, nil
}
