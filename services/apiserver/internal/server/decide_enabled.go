package server

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// classes are the names by which --runtime-config means many versions at once, and which those are. A later one holds
// over an earlier one, and the name of a version over all.
var classes = []struct {
	name string
	of   *regexp.Regexp
}{
	{"api/all", regexp.MustCompile(`.`)},
	{"api/ga", regexp.MustCompile(`^v\d+$`)},
	{"api/beta", regexp.MustCompile(`^v\d+beta\d+$`)},
	{"api/alpha", regexp.MustCompile(`^v\d+alpha\d+$`)},
}

// enabled are the versions that are served, and the resources of them that are not.
type enabled struct {
	versions map[schema.GroupVersion]bool
	without  map[schema.GroupVersionResource]bool
}

// decideEnabled is what the settings of --runtime-config leave of all versions, of which some are needed. The error is
// one sentence.
func decideEnabled(settings map[string]string, all, needed []schema.GroupVersion) (enabled, error) {
	out := enabled{versions: map[schema.GroupVersion]bool{}, without: map[schema.GroupVersionResource]bool{}}
	values := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		value, err := strconv.ParseBool(orTrue(settings[key]))
		if err != nil {
			return enabled{}, fmt.Errorf("%s: %q is neither true nor false", key, settings[key])
		}
		values[key] = value
	}
	for _, version := range all {
		out.versions[version] = true
		for _, class := range classes {
			if value, ok := values[class.name]; ok && class.of.MatchString(version.Version) {
				out.versions[version] = value
			}
		}
	}
	for _, class := range classes {
		delete(values, class.name)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		version, resource, err := parseSetting(key)
		if err != nil {
			return enabled{}, err
		}
		switch _, known := out.versions[version]; {
		case !known:
			return enabled{}, fmt.Errorf("%s: there is no version %s; there are %s", key, version, namesOf(all))
		case resource == "":
			out.versions[version] = values[key]
		case !values[key]:
			out.without[version.WithResource(resource)] = true
		}
	}
	return out, out.check(needed)
}

// orTrue is a setting's value; one that is named alone is on.
func orTrue(value string) string {
	if value == "" {
		return "true"
	}
	return value
}

// parseSetting reads GROUP/VERSION, VERSION of the core group, or GROUP/VERSION/RESOURCE.
func parseSetting(key string) (version schema.GroupVersion, resource string, err error) {
	parts := strings.Split(key, "/")
	if len(parts) == 1 {
		parts = []string{"", parts[0]}
	}
	if len(parts) > 3 || slices.Contains(parts[1:], "") {
		return version, "", fmt.Errorf("%s: is none of api/all, api/ga, api/beta, api/alpha, VERSION, GROUP/VERSION "+
			"and GROUP/VERSION/RESOURCE", key)
	}
	if len(parts) == 3 {
		resource = parts[2]
	}
	return schema.GroupVersion{Group: parts[0], Version: parts[1]}, resource, nil
}

// check wants the versions without which the server itself would not work.
func (e enabled) check(needed []schema.GroupVersion) error {
	var missing []schema.GroupVersion
	for _, version := range needed {
		if !e.versions[version] {
			missing = append(missing, version)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s cannot be off: the apiserver itself uses it", namesOf(missing))
	}
	for _, resource := range slices.SortedFunc(maps.Keys(e.without), func(a, b schema.GroupVersionResource) int {
		return strings.Compare(a.String(), b.String())
	}) {
		if slices.Contains(needed, resource.GroupVersion()) {
			return fmt.Errorf("%s/%s cannot be off: the apiserver itself uses %s", resource.GroupVersion(),
				resource.Resource, resource.GroupVersion())
		}
	}
	return nil
}

func namesOf(versions []schema.GroupVersion) string {
	names := make([]string, 0, len(versions))
	for _, version := range versions {
		names = append(names, version.String())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
