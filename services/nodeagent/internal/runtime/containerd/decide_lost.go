package containerd

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// sandboxesOnly is the filter that finds the containers that CRI made as sandboxes, by the label that it gives them.
const sandboxesOnly = `labels."io.cri-containerd.kind"==sandbox`

// lostSandboxes returns the sandboxes that are recorded and neither leased nor listed by CRI. A lease is there before
// the record, and stays until CRI has listed the sandbox or has given it up. So leases must have been asked for after
// the records, and CRI after the leases.
func lostSandboxes(recorded, leased, listed map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(recorded)), func(id string) bool {
		return leased[id] || listed[id] || !idForm.MatchString(id)
	})
}

var versionForm = regexp.MustCompile(`^v?(\d+)\.`)

// leasesSandboxes says whether a containerd of this version makes a lease for each sandbox. Those before 2.0 need not.
func leasesSandboxes(version string) bool {
	found := versionForm.FindStringSubmatch(version)
	if found == nil {
		return false
	}
	major, err := strconv.Atoi(found[1])
	return err == nil && major >= 2
}
