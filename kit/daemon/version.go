package daemon

import (
	"runtime/debug"
	"strings"
)

// version is set by the linker: -X keelson.dev/kit/daemon.version=v0.1.0.
var version string

// Version returns the version stamped at link time, else the VCS revision, else "devel".
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				return setting.Value
			}
		}
	}
	return "devel"
}

// ownMark stands in front of Keelson's version where the version of an API is said, in the place of build metadata.
const ownMark = "+keelson."

// WithVersion returns a version of the Kubernetes API with Keelson's own behind it: v1.37.2+keelson.v0.1.0.
func WithVersion(api string) string { return api + ownMark + Metadata(Version()) }

// OwnVersion returns Keelson's own version from what WithVersion has made; none from a version of anybody else's.
func OwnVersion(version string) (own string, ok bool) {
	_, own, ok = strings.Cut(version, ownMark)
	return own, ok
}

// Metadata returns a version of Keelson's as WithVersion writes it: what may not stand behind the + of a semantic
// version becomes a dash. What git describe prints stays as it is.
func Metadata(version string) string {
	return strings.Map(func(c rune) rune {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '.' && c != '-' {
			return '-'
		}
		return c
	}, version)
}
