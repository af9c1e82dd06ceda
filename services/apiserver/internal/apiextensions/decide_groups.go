package apiextensions

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Established reports whether the objects of a definition are served.
func Established(d *apiextensionsv1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(d, apiextensionsv1.Established)
}

// decideVersions are the versions of each group that the definitions serve, each once and in order.
func decideVersions(definitions []*apiextensionsv1.CustomResourceDefinition) map[string][]string {
	versions := map[string][]string{}
	for _, d := range definitions {
		if !Established(d) {
			continue
		}
		for i := range d.Spec.Versions {
			if v := &d.Spec.Versions[i]; v.Served {
				versions[d.Spec.Group] = append(versions[d.Spec.Group], v.Name)
			}
		}
	}
	for group, names := range versions {
		slices.Sort(names)
		versions[group] = slices.Compact(names)
	}
	return versions
}
