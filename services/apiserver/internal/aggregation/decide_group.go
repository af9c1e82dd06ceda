package aggregation

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// decideGroup is what /apis tells of a group of which these versions are handed on and those are defined; false if
// there is none. A version that does not answer is told of too, so that clients say that they could not read it rather
// than take it for gone.
func decideGroup(name string, handedOn []*apiregistration.APIServiceSpec, defined []string) (metav1.APIGroup, bool) {
	order := map[string]int32{}
	for _, version := range defined {
		order[version] = definedPriority.version
	}
	for _, spec := range handedOn {
		order[spec.Version] = spec.VersionPriority
	}
	if len(order) == 0 {
		return metav1.APIGroup{}, false
	}
	versions := slices.SortedFunc(maps.Keys(order), func(a, b string) int {
		return cmp.Or(cmp.Compare(order[b], order[a]), version.CompareKubeAwareVersionStrings(b, a))
	})
	group := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: name}
	for _, version := range versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{Version: version,
			GroupVersion: schema.GroupVersion{Group: name, Version: version}.String()})
	}
	group.PreferredVersion = group.Versions[0]
	return group, true
}
