// Package reserved is what of a machine is kept from Pods: for its system and for the daemons of the mesh. Its flags
// are those of the kubelet.
package reserved

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// PIDs is the resource of process IDs, in the field's word. It is reserved and limited, but no Pod requests it.
const PIDs corev1.ResourceName = "pid"

// Who may be held to what is left: Pods, or nobody.
const (
	enforcePods = "pods"
	enforceNone = "none"
)

// names are the resources of which something may be reserved.
var names = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, PIDs}

// Settings are the flags.
type Settings struct {
	// System is kept for the machine's own daemons, Kube for those of the mesh.
	System, Kube map[string]string
	// Enforce lists who is held to what is left.
	Enforce []string
}

// DefaultSettings are those of a node on which nothing is said.
func DefaultSettings() Settings { return Settings{Enforce: []string{enforcePods}} }

// AddFlags adds the flags.
func (s *Settings) AddFlags(fs *pflag.FlagSet) {
	fs.StringToStringVar(&s.System, "system-reserved", s.System,
		"what of the machine is kept for its system, as RESOURCE=QUANTITY, comma-separated: cpu, memory, "+
			"ephemeral-storage, pid")
	fs.StringToStringVar(&s.Kube, "kube-reserved", s.Kube,
		"what of the machine is kept for the daemons of the mesh, as --system-reserved")
	fs.StringSliceVar(&s.Enforce, "enforce-node-allocatable", s.Enforce,
		"who is held to what is left: pods, by the limits of the cgroup of all Pods; none for nobody")
}

// Validate says what is wrong with the flags.
func (s *Settings) Validate() error {
	if _, err := s.Amounts(); err != nil {
		return err
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
