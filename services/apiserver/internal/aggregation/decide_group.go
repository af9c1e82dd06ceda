package aggregation

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// decideGroup is what /apis tells of a group whose versions these are; false if there is none. A version that does not
// answer is told of too, so that clients say that they could not read it rather than take it for gone.
func decideGroup(specs []*apiregistration.APIServiceSpec) (metav1.APIGroup, bool) {
	if len(specs) == 0 {
		return metav1.APIGroup{}, false
	}
	specs = slices.SortedFunc(slices.Values(specs), func(a, b *apiregistration.APIServiceSpec) int {
		return cmp.Or(cmp.Compare(b.VersionPriority, a.VersionPriority),
			version.CompareKubeAwareVersionStrings(b.Version, a.Version))
	})
	group := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: specs[0].Group}
	for _, spec := range specs {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{Version: spec.Version,
			GroupVersion: schema.GroupVersion{Group: spec.Group, Version: spec.Version}.String()})
	}
	group.PreferredVersion = group.Versions[0]
	return group, true
}
