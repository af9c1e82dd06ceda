// Package admission is the one list of admission plugins, in the order in which they see a request.
package admission

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"

	"keelson.dev/services/apiserver/internal/admission/certificaterequests"
	"keelson.dev/services/apiserver/internal/admission/claimresize"
	"keelson.dev/services/apiserver/internal/admission/defaultclass"
	"keelson.dev/services/apiserver/internal/admission/denyexternalips"
	"keelson.dev/services/apiserver/internal/admission/limitranger"
	"keelson.dev/services/apiserver/internal/admission/listbounds"
	"keelson.dev/services/apiserver/internal/admission/noderestriction"
	"keelson.dev/services/apiserver/internal/admission/pluginconfig"
	"keelson.dev/services/apiserver/internal/admission/podsecurity"
	"keelson.dev/services/apiserver/internal/admission/podtopologylabels"
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
	// optional ones are off unless an operator names them.
	optional bool
}

// plugins are the chain: first every plugin changes the request in this order, then every plugin checks the result.
var plugins = []plugin{
	{name: lifecycle.PluginName, register: lifecycle.Register},
	{name: serviceaccount.PluginName, register: serviceaccount.Register},
	{name: noderestriction.PluginName, register: noderestriction.Register},
	{name: taintnodesbycondition.PluginName, register: taintnodesbycondition.Register},
	{name: podsecurity.PluginName, register: podsecurity.Register},
	{name: priority.PluginName, register: priority.Register},
	{name: limitranger.PluginName, register: limitranger.Register},
	{name: tolerationseconds.PluginName, register: tolerationseconds.Register},
	{name: podtopologylabels.PluginName, register: podtopologylabels.Register},
	{name: defaultclass.Storage, register: defaultclass.RegisterStorage},
	{name: defaultclass.Ingress, register: defaultclass.RegisterIngress},
	{name: protection.StorageObjects, register: protection.RegisterStorageObjects},
	{name: protection.PodGroups, register: protection.RegisterPodGroups},
	{name: runtimeclass.PluginName, register: runtimeclass.Register},
	{name: claimresize.PluginName, register: claimresize.Register},
	{name: certificaterequests.Approval, register: certificaterequests.RegisterApproval},
	{name: certificaterequests.Signing, register: certificaterequests.RegisterSigning},
	{name: certificaterequests.SubjectRestriction, register: certificaterequests.RegisterSubjectRestriction},
	{name: denyexternalips.PluginName, register: denyexternalips.Register, optional: true},
	{name: listbounds.PluginName, register: listbounds.Register},
	// Last: what another plugin refuses is not charged.
	{name: resourcequota.PluginName, register: resourcequota.Register},
}

// configurable are the plugins that take a configuration, and what says what is wrong with one.
var configurable = map[string]func([]byte) error{
	podsecurity.PluginName: podsecurity.Check, resourcequota.PluginName: resourcequota.Check,
}

// ReadConfiguration returns what the file says about plugins; without a path that is nothing. An error names the path
// in the file.
func ReadConfiguration(path string) (pluginconfig.Plugins, error) {
	return pluginconfig.Read(path, configurable)
}

// CheckEnabled says what is wrong with the names of plugins that an operator wants to be on. Those that are on by
// themselves may be among them.
func CheckEnabled(names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(plugins, func(p plugin) bool { return p.name == name }) {
			var on, off []string
			for _, p := range plugins {
				if p.optional {
					off = append(off, p.name)
				} else {
					on = append(on, p.name)
				}
			}
			return fmt.Errorf("%q is no admission plugin of this server: there are %s, and always on are %s", name,
				strings.Join(off, ", "), strings.Join(on, ", "))
		}
	}
	return nil
}

// enabled are the plugins that are on, of which the optional ones are named.
func enabled(names []string) []plugin {
	return slices.DeleteFunc(slices.Clone(plugins), func(p plugin) bool {
		return p.optional && !slices.Contains(names, p.name)
	})
}

// New returns the chain. Each plugin gets what it wants of c; one that lacks something is an error.
func New(c Config) (admission.Interface, error) {
	return build(enabled(c.Enabled), c.Plugins, c.initializers())
}

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
