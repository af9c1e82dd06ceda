package server

import (
	"fmt"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/apiextensions"
	"keelson.dev/services/apiserver/internal/openapi"
	"keelson.dev/services/apiserver/internal/scheme"
)

const (
	// apiLevel is the Kubernetes version whose API is served.
	apiMajor, apiMinor, apiPatch = "1", "37", "2"

	// watchDrain is how long a stop waits for open watches to end by themselves.
	watchDrain = 500 * time.Millisecond
)

// newConfig returns the library's configuration with everything that needs no
// store and no identity.
func (o *Options) newConfig(s *runtime.Scheme, listener net.Listener, served enabled) (*genericapiserver.Config,
	error) {
	config := genericapiserver.NewConfig(scheme.Codecs(s))
	config.EffectiveVersion = servedVersion{compatibility.DefaultBuildEffectiveVersion()}
	config.EnableProfiling = false
	config.EnableIndex = true
	reads, writes := o.FlowControl.held()
	config.MaxRequestsInFlight, config.MaxMutatingRequestsInFlight = reads*inFlightRoom, writes*inFlightRoom
	config.ShutdownWatchTerminationGracePeriod = watchDrain
	config.LongRunningFunc = genericfilters.BasicLongRunningRequestCheck(
		sets.NewString("watch", "proxy"), sets.NewString("attach", "exec", "proxy", "log", "portforward"))
	config.OpenAPIConfig, config.OpenAPIV3Config = openapi.Configs(s, apiextensions.Scheme)
	config.MergedResourceConfig = serverstorage.NewResourceConfig()
	for version, on := range served.versions {
		if on {
			config.MergedResourceConfig.EnableVersions(version)
		}
	}
	config.GoawayChance = o.GoawayChance
	if err := o.serve(config, listener); err != nil {
		return nil, fmt.Errorf("preparing to serve: %w", err)
	}
	if err := o.observe(config); err != nil {
		return nil, err
	}
	return config, nil
}

// servedVersion makes /version say which Kubernetes API is served and which Keelson serves it.
type servedVersion struct {
	basecompatibility.EffectiveVersion
}

// Info implements EffectiveVersion.
func (v servedVersion) Info() *apimachineryversion.Info {
	info := v.EffectiveVersion.Info()
	info.Major, info.Minor = apiMajor, apiMinor
	info.GitVersion = daemon.WithVersion(fmt.Sprintf("v%s.%s.%s", apiMajor, apiMinor, apiPatch))
	return info
}
