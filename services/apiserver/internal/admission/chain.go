// Package admission is the one list of admission plugins, in the order in which they see a request.
package admission

import (
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"

	"keelson.dev/services/apiserver/internal/admission/claimresize"
	"keelson.dev/services/apiserver/internal/admission/defaultclass"
	"keelson.dev/services/apiserver/internal/admission/limitranger"
	"keelson.dev/services/apiserver/internal/admission/listbounds"
	"keelson.dev/services/apiserver/internal/admission/noderestriction"
	"keelson.dev/services/apiserver/internal/admission/pluginconfig"
	"keelson.dev/services/apiserver/internal/admission/podsecurity"
	"keelson.dev/services/apiserver/internal/admission/priority"
	"keelson.dev/services/apiserver/internal/admission/protection"
	"keelson.dev/services/apiserver/internal/admission/resourcequota"
	"keelson.dev/services/apiserver/internal/admission/runtimeclass"
	"keelson.dev/services/apiserver/internal/admission/serviceaccount"
	"keelson.dev/services/apiserver/internal/admission/taintnodesbycondition"
	"keelson.dev/services/apiserver/internal/admission/tolerationseconds"
)

// plugin is a row of the chain: the library's, or one of ours that looks the same.
type plugin struct {
	name     string
	register func(*admission.Plugins)
}

// plugins are the chain: first every plugin changes the request in this order, then every plugin checks the result.
var plugins = []plugin{
	{lifecycle.PluginName, lifecycle.Register},
	{serviceaccount.PluginName, serviceaccount.Register},
	{noderestriction.PluginName, noderestriction.Register},
	{taintnodesbycondition.PluginName, taintnodesbycondition.Register},
	{podsecurity.PluginName, podsecurity.Register},
	{priority.PluginName, priority.Register},
	{limitranger.PluginName, limitranger.Register},
	{tolerationseconds.PluginName, tolerationseconds.Register},
	{defaultclass.Storage, defaultclass.RegisterStorage},
	{defaultclass.Ingress, defaultclass.RegisterIngress},
	{protection.StorageObjects, protection.RegisterStorageObjects},
	{protection.PodGroups, protection.RegisterPodGroups},
	{runtimeclass.PluginName, runtimeclass.Register},
	{claimresize.PluginName, claimresize.Register},
	{listbounds.PluginName, listbounds.Register},
	// Last: what another plugin refuses is not charged.
	{resourcequota.PluginName, resourcequota.Register},
}

// configurable are the plugins that take a configuration, and what says what is wrong with one.
var configurable = map[string]func([]byte) error{podsecurity.PluginName: podsecurity.Check}

// ReadConfiguration returns what the file says about plugins; without a path that is nothing. An error names the path
// in the file.
func ReadConfiguration(path string) (pluginconfig.Plugins, error) {
	return pluginconfig.Read(path, configurable)
}

// New returns the chain. Each plugin gets what it wants of c; one that lacks something is an error.
func New(c Config) (admission.Interface, error) { return build(plugins, c.Plugins, c.initializers()) }

func build(rows []plugin, configured pluginconfig.Plugins, initializer admission.PluginInitializer) (
	admission.Interface, error) {
	registered := admission.NewPlugins()
	names := make([]string, 0, len(rows))
	for _, p := range rows {
		p.register(registered)
		names = append(names, p.name)
	}
	return registered.NewFromPlugins(names, configured, initializer, nil)
}
