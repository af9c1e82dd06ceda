package resourceslice

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/podspec"
	"keelson.dev/services/apiserver/internal/registry/resource/device"
)

var specPath = field.NewPath("spec")

// Validate returns what is wrong with a new slice.
func Validate(s *slice) field.ErrorList { return validate(&s.Spec, nil) }

// ValidateUpdate returns what is wrong with s as the successor of old: whose devices it has, of which pool and where
// never changes.
func ValidateUpdate(s, old *slice) field.ErrorList {
	errs := validate(&s.Spec, &old.Spec)
	errs = append(errs, fieldcheck.Immutable(s.Spec.Driver, old.Spec.Driver, specPath.Child("driver"))...)
	errs = append(errs, fieldcheck.Immutable(s.Spec.Pool.Name, old.Spec.Pool.Name, specPath.Child("pool", "name"))...)
	return append(errs, fieldcheck.Immutable(s.Spec.NodeName, old.Spec.NodeName, specPath.Child("nodeName"))...)
}

func validate(spec, old *resourcev1.ResourceSliceSpec) field.ErrorList {
	if errs := boundDevices(spec.Devices); len(errs) > 0 {
		return errs
	}
	errs := device.Generated(resourcev1.Validate_ResourceSliceSpec, spec, old, specPath)
	if device.TooMany(errs) {
		return errs
	}
	errs = append(errs, fieldcheck.Required(spec.Driver, specPath.Child("driver"), fieldcheck.DriverName)...)
	errs = append(errs, validatePool(&spec.Pool, specPath.Child("pool"))...)
	errs = append(errs, validatePlace(spec)...)
	if spec.SharedCounters != nil && spec.Devices != nil {
		errs = append(errs, field.Invalid(specPath, "", "only one of `sharedCounters` or `devices` is allowed"))
	}
	for i := range spec.SharedCounters {
		errs = append(errs, boundCounters(spec.SharedCounters[i].Counters,
			resourcev1.ResourceSliceMaxCountersPerCounterSet, specPath.Child("sharedCounters").Index(i))...)
	}
	return append(errs, validateDevices(spec, old)...)
}

// boundDevices allows fewer devices where each may need more.
func boundDevices(devices []resourcev1.Device) field.ErrorList {
	limit := resourcev1.ResourceSliceMaxDevices
	for i := range devices {
		if len(devices[i].Taints) > 0 || len(devices[i].ConsumesCounters) > 0 {
			limit = resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
		}
	}
	if len(devices) > limit {
		return field.ErrorList{field.TooMany(specPath.Child("devices"), len(devices), limit)}
	}
	return nil
}

func boundCounters(counters map[string]resourcev1.Counter, limit int, path *field.Path) field.ErrorList {
	if len(counters) > limit {
		return field.ErrorList{field.TooMany(path.Child("counters"), len(counters), limit)}
	}
	return nil
}

func validatePool(pool *resourcev1.ResourcePool, path *field.Path) field.ErrorList {
	errs := fieldcheck.Required(pool.Name, path.Child("name"), device.PoolName)
	if count := pool.ResourceSliceCount; count <= 0 {
		errs = append(errs, field.Invalid(path.Child("resourceSliceCount"), count, fieldcheck.MustBePositive))
	}
	return append(errs, fieldcheck.NonNegative(pool.Generation, path.Child("generation"))...)
}

// place is where devices are, said in one of several ways.
type place struct {
	node     *string
	selector *corev1.NodeSelector
	allNodes *bool
	// perDevice says that each device says so itself.
	perDevice *bool
}

// said checks the ways in which a place is said, and names those.
func (p place) said(path *field.Path) (ways []string, errs field.ErrorList) {
	if p.node != nil {
		ways = append(ways, "`nodeName`")
		errs = append(errs, fieldcheck.Required(*p.node, path.Child("nodeName"), fieldcheck.DNSSubdomain)...)
	}
	if p.selector != nil {
		ways = append(ways, "`nodeSelector`")
		errs = append(errs, podspec.ValidateNodeSelector(p.selector, path.Child("nodeSelector"))...)
	}
	for _, way := range []struct {
		name string
		set  *bool
	}{{"allNodes", p.allNodes}, {"perDeviceNodeSelection", p.perDevice}} {
		switch {
		case way.set == nil:
		case *way.set:
			ways = append(ways, "`"+way.name+"`")
		default:
			errs = append(errs, field.Invalid(path.Child(way.name), false, "must be either unset or set to true"))
		}
	}
	return ways, errs
}

func validatePlace(spec *resourcev1.ResourceSliceSpec) field.ErrorList {
	ways, errs := place{spec.NodeName, spec.NodeSelector, spec.AllNodes, spec.PerDeviceNodeSelection}.said(specPath)
	if spec.NodeSelector != nil && len(spec.NodeSelector.NodeSelectorTerms) != 1 {
		errs = append(errs, field.Invalid(specPath.Child("nodeSelector", "nodeSelectorTerms"),
			len(spec.NodeSelector.NodeSelectorTerms), "must have exactly one node selector term"))
	}
	return append(errs, one(ways, specPath, "exactly one of `nodeName`, `nodeSelector`, `allNodes`, "+
		"`perDeviceNodeSelection` is required")...)
}

func one(ways []string, path *field.Path, wanted string) field.ErrorList {
	switch len(ways) {
	case 0:
		return field.ErrorList{field.Required(path, wanted)}
	case 1:
		return nil
	}
	return field.ErrorList{field.Invalid(path, "{"+strings.Join(ways, ", ")+"}",
		wanted+", but multiple fields are set")}
}

// validateDevices checks each device. Capacities and taints that a device had before stay valid.
func validateDevices(spec, old *resourcev1.ResourceSliceSpec) field.ErrorList {
	before := map[string]*resourcev1.Device{}
	if old != nil {
		for i := range old.Devices {
			before[old.Devices[i].Name] = &old.Devices[i]
		}
	}
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range spec.Devices {
		d, at := &spec.Devices[i], specPath.Child("devices").Index(i)
		if names.Has(d.Name) {
			errs = append(errs, field.Duplicate(at, d.Name))
		}
		names.Insert(d.Name)
		errs = append(errs, validateDevicePlace(d, ptr.Deref(spec.PerDeviceNodeSelection, false), at)...)
		errs = append(errs, validateDevice(d, before[d.Name], at)...)
	}
	return errs
}

// validateDevicePlace wants a device to say where it is just where the slice leaves that to its devices.
func validateDevicePlace(d *resourcev1.Device, perDevice bool, path *field.Path) field.ErrorList {
	const wanted = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when " +
		"`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
	if perDevice {
		ways, errs := place{node: d.NodeName, selector: d.NodeSelector, allNodes: d.AllNodes}.said(path)
		return append(errs, one(ways, path, wanted)...)
	}
	if d.NodeName == nil && d.NodeSelector == nil && d.AllNodes == nil {
		return nil
	}
	return field.ErrorList{field.Invalid(path, d.Name, "`nodeName`, `nodeSelector` and `allNodes` can only be set if "+
		"`perDeviceNodeSelection` is set to true in the ResourceSlice spec")}
}
