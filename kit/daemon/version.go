package daemon

import "runtime/debug"

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
