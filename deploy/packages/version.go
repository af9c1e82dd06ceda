package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// described is what git describe --tags --always --dirty prints: a tag, how many commits are on top of it and which one
// is the last, or where there is no tag the commit alone.
var described = regexp.MustCompile(`^(?:(?:v(\d+(?:\.\d+)*)|(\d+(?:\.\d+)+))(?:-([0-9A-Za-z.-]+?))??` +
	`(?:-(\d+)-g([0-9a-f]+))?|([0-9a-f]{4,40}))(-dirty)?$`)

// packageVersion is a version for dpkg and rpm alike. It sorts as commits do: pre-releases before their release, what
// is on top of a tag after it, and commits without a tag by their dates and before every release.
func packageVersion(description string, committed time.Time) (string, error) {
	parts := described.FindStringSubmatch(description)
	if parts == nil {
		return "", fmt.Errorf("--version: %q must be what git describe --tags --always --dirty prints, with tags like "+
			"v1.2.3 or v1.2.3-rc.1", description)
	}
	release, pre, above, commit, untagged, dirty := parts[1]+parts[2], parts[3], parts[4], parts[5], parts[6], parts[7]
	var version string
	switch {
	case untagged != "":
		version = "0~" + committed.UTC().Format("20060102150405") + ".g" + untagged
	case pre != "":
		version = release + "~" + strings.ReplaceAll(pre, "-", ".")
	default:
		version = release
	}
	if above != "" {
		version += "+" + above + ".g" + commit
	}
	if dirty != "" {
		version += "+dirty"
	}
	return version, nil
}
