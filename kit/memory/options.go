package memory

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// DefaultHeapTarget is enough for a daemon that writes no more than a few objects at a time.
	DefaultHeapTarget = 48 << 20
	// leastSoftLimit is what an empty daemon needs, leastHeapTarget what its heap does.
	leastSoftLimit  = 64 << 20
	leastHeapTarget = 16 << 20
	// smallestGCPercent and largestGCPercent bound what a user may ask for.
	smallestGCPercent, largestGCPercent = 10, 1000
)

// Options say how much memory the process may hold.
type Options struct {
	// SoftLimit is above what the collector works harder; 0 leaves it to GOMEMLIMIT or a default.
	SoftLimit resource.QuantityValue
	// HeapTarget is up to what size the heap grows before garbage is collected, unless what is alive needs more.
	HeapTarget resource.QuantityValue
	// GCPercent is how much garbage may lie beside what is alive before it is collected; 0 leaves it to GOGC or the
	// target.
	GCPercent int
}

// NewOptions returns the defaults of a daemon whose heap has this target.
func NewOptions(heapTarget int64) Options {
	target := *resource.NewQuantity(heapTarget, resource.BinarySI)
	return Options{HeapTarget: resource.QuantityValue{Quantity: target}}
}

// AddFlags binds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.Var(&o.SoftLimit, "memory-soft-limit",
		"memory above which the garbage collector works harder, such as 2Gi, and which gives way to what is alive; 0 "+
			"is GOMEMLIMIT's, or a quarter of the cgroup's or machine's")
	fs.Var(&o.HeapTarget, "gc-heap-target",
		"size up to which the heap grows before garbage is collected, but to no more than five times what is alive, "+
			"and by three fifths of that where it leaves less room")
	fs.IntVar(&o.GCPercent, "gc-percent", o.GCPercent,
		"garbage that may lie beside what is alive until it is collected, in percent of that; 0 is GOGC's, or follows "+
			"--gc-heap-target")
}

// Validate says what is wrong with the values.
func (o *Options) Validate() error {
	limit := o.SoftLimit.Quantity
	switch percent := o.GCPercent; {
	case !limit.IsZero() && limit.Value() < leastSoftLimit:
		return fmt.Errorf("--memory-soft-limit: %s is neither 0 nor at least 64Mi", limit.String())
	case o.HeapTarget.Value() < leastHeapTarget:
		return fmt.Errorf("--gc-heap-target: %s is not at least 16Mi", o.HeapTarget.String())
	case percent != 0 && (percent < smallestGCPercent || percent > largestGCPercent):
		return fmt.Errorf("--gc-percent: %d is neither 0 nor from 10 to 1000", percent)
	}
	return nil
}
