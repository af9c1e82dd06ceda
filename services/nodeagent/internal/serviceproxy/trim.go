package serviceproxy

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/services/nodeagent/internal/serviceproxy/plan"
)

// SliceSelector selects the EndpointSlices whose traffic this proxy carries.
const SliceSelector = "!" + corev1.IsHeadlessService + ",!" + plan.LabelProxyName

// Trim returns a function that drops the fields of an EndpointSlice that the proxy never reads, and shares values
// that endpoints have in common. One informer may call it, one object at a time.
func Trim() cache.TransformFunc {
	names := map[string]*string{}
	name := func(s *string) *string {
		if s == nil {
			return nil
		}
		if names[*s] == nil {
			names[*s] = s
		}
		return names[*s]
	}
	yes, no := new(true), new(false)
	truth := func(b *bool) *bool {
		switch {
		case b == nil:
			return nil
		case *b:
			return yes
		}
		return no
	}
	return func(object any) (any, error) {
		slice, ok := object.(*discoveryv1.EndpointSlice)
		if !ok {
			return object, nil
		}
		slice.ManagedFields, slice.Annotations, slice.OwnerReferences = nil, nil, nil
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			e.TargetRef, e.Hostname, e.Zone, e.DeprecatedTopology = nil, nil, nil, nil
			e.NodeName = name(e.NodeName)
			c := &e.Conditions
			c.Ready, c.Serving, c.Terminating = truth(c.Ready), truth(c.Serving), truth(c.Terminating)
		}
		return slice, nil
	}
}
