package containerd

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// sandboxesOnly is the filter for the containers that CRI created as sandboxes, by the label that it sets.
const sandboxesOnly = `labels."io.cri-containerd.kind"==sandbox`

// lostSandboxes returns the recorded sandboxes that are neither leased nor listed by CRI. A lease is created before
// the record, and stays until CRI lists the sandbox or has given it up. So leases must have been listed after the
// records, and CRI's sandboxes after the leases.
func lostSandboxes(recorded, leased, listed map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(recorded)), func(id string) bool {
		return leased[id] || listed[id] || !idForm.MatchString(id)
	})
}

var versionForm = regexp.MustCompile(`^v?(\d+)\.`)

// leasesSandboxes reports whether a containerd of this version creates a lease for each sandbox. Versions before
// 2.0 need not.
func leasesSandboxes(version string) bool {
	found := versionForm.FindStringSubmatch(version)
	if found == nil {
		return false
	}
	major, err := strconv.Atoi(found[1])
	return err == nil && major >= 2
}
