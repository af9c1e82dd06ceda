package userns

import (
	"fmt"
	"strconv"
	"strings"
)

// User is the system user whose subordinate IDs a node assigns.
const User = "kubelet"

// Custom reads the subordinate ID lists of the host, in the form of subuid(5), and returns the range that they give to
// User. ok is false when neither list names the user: then Default holds. Anything but one equal line in both lists, at
// a multiple of 65536 of at least 65536, with a multiple of 65536 IDs and enough for maxPods, is an error.
func Custom(subuid, subgid string, maxPods int) (r Range, ok bool, err error) {
	uids, err := lines("subuid", subuid)
	if err != nil {
		return Range{}, false, err
	}
	gids, err := lines("subgid", subgid)
	if err != nil {
		return Range{}, false, err
	}
	if len(uids) == 0 && len(gids) == 0 {
		return Range{}, false, nil
	}
	if len(uids) != 1 || len(gids) != 1 {
		return Range{}, false,
			fmt.Errorf(
				"user %s must have exactly one range of subordinate user IDs and one of group IDs, found %d and %d",
				User, len(uids), len(gids))
	}
	if uids[0] != gids[0] {
		return Range{}, false,
			fmt.Errorf("user %s must have the same range of subordinate user and group IDs, found %d+%d and %d+%d",
				User, uids[0].First, uids[0].Length, gids[0].First, gids[0].Length)
	}
	return uids[0], true, check(uids[0], maxPods)
}

func check(r Range, maxPods int) error {
	switch {
	case r.First < Length || r.First%Length != 0:
		return fmt.Errorf("the first subordinate ID of user %s is %d: it must be a multiple of %d and at least that",
			User, r.First, Length)
	case r.Length%Length != 0 || uint64(r.Length) < uint64(maxPods)*Length:
		return fmt.Errorf(
			"user %s has %d subordinate IDs: the number must be a multiple of %d and at least %d for %d Pods",
			User, r.Length, Length, maxPods*Length, maxPods)
	case uint64(r.First)+uint64(r.Length) > 1<<32:
		return fmt.Errorf("the subordinate IDs of user %s end beyond the largest ID", User)
	}
	return nil
}

// lines returns the ranges that one list gives to User.
func lines(file, text string) ([]Range, error) {
	var ranges []Range
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if fields[0] != User {
			continue
		}
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s: %q must be user:first:count", file, line)
		}
		first, err := strconv.ParseUint(fields[1], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: first ID in %q: %w", file, line, err)
		}
		count, err := strconv.ParseUint(fields[2], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: count in %q: %w", file, line, err)
		}
		ranges = append(ranges, Range{First: uint32(first), Length: uint32(count)})
	}
	return ranges, nil
}
