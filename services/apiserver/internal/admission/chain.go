// Package admission is the one list of admission plugins, in the order in which they see a request.
package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"

	"keelson.dev/services/apiserver/internal/admission/alwayspullimages"
	"keelson.dev/services/apiserver/internal/admission/asked"
	"keelson.dev/services/apiserver/internal/admission/certificaterequests"
	"keelson.dev/services/apiserver/internal/admission/claimresize"
	"keelson.dev/services/apiserver/internal/admission/defaultclass"
	"keelson.dev/services/apiserver/internal/admission/denyexternalips"
	"keelson.dev/services/apiserver/internal/admission/eventratelimit"
	"keelson.dev/services/apiserver/internal/admission/limitranger"
	"keelson.dev/services/apiserver/internal/admission/listbounds"
	"keelson.dev/services/apiserver/internal/admission/noderestriction"
	"keelson.dev/services/apiserver/internal/admission/ownerpermissions"
	"keelson.dev/services/apiserver/internal/admission/pluginconfig"
	"keelson.dev/services/apiserver/internal/admission/podnodeselector"
	"keelson.dev/services/apiserver/internal/admission/podsecurity"
	"keelson.dev/services/apiserver/internal/admission/podtopologylabels"
	"keelson.dev/services/apiserver/internal/admission/priority"
	"keelson.dev/services/apiserver/internal/admission/protection"
	"keelson.dev/services/apiserver/internal/admission/resourcequota"
	"keelson.dev/services/apiserver/internal/admission/runtimeclass"
	"keelson.dev/services/apiserver/internal/admission/serviceaccount"
	"keelson.dev/services/apiserver/internal/admission/taintnodesbycondition"
	"keelson.dev/services/apiserver/internal/admission/tolerationseconds"
	"keelson.dev/services/apiserver/internal/admission/trustbundles"
	"keelson.dev/services/apiserver/internal/admission/webhookconfig"
)

// plugin is a row of the chain: the library's, or one of ours that looks the same.
type plugin struct {
	name     string
	register func(*admission.Plugins)
	// optional ones are off unless an operator names them.
	optional bool
	// check says what is wrong with the plugin's configuration; nil: it takes none.
	check func([]byte) error
}

// plugins are the chain: first every plugin changes the request in this order, then every plugin checks the result.
var plugins = []plugin{
	{name: lifecycle.PluginName, register: lifecycle.Register},
	{name: serviceaccount.PluginName, register: serviceaccount.Register},
	{name: noderestriction.PluginName, register: noderestriction.Register},
	{name: taintnodesbycondition.PluginName, register: taintnodesbycondition.Register},
	{name: alwayspullimages.PluginName, register: alwayspullimages.Register, optional: true},
	{name: podsecurity.PluginName, register: podsecurity.Register, check: podsecurity.Check},
	{
		name:     podnodeselector.PluginName,
		register: podnodeselector.Register,
		optional: true,
		check:    podnodeselector.Check,
	},
	{name: priority.PluginName, register: priority.Register},
	{name: limitranger.PluginName, register: limitranger.Register},
	{name: tolerationseconds.PluginName, register: tolerationseconds.Register},
	{name: eventratelimit.PluginName, register: eventratelimit.Register, optional: true, check: eventratelimit.Check},
	{name: podtopologylabels.PluginName, register: podtopologylabels.Register},
	{name: defaultclass.Storage, register: defaultclass.RegisterStorage},
	{name: defaultclass.Ingress, register: defaultclass.RegisterIngress},
	{name: protection.StorageObjects, register: protection.RegisterStorageObjects},
	{name: protection.PodGroups, register: protection.RegisterPodGroups},
	{name: ownerpermissions.PluginName, register: ownerpermissions.Register, optional: true},
	{name: runtimeclass.PluginName, register: runtimeclass.Register},
	{name: claimresize.PluginName, register: claimresize.Register},
	{name: certificaterequests.Approval, register: certificaterequests.RegisterApproval},
	{name: certificaterequests.Signing, register: certificaterequests.RegisterSigning},
	{name: trustbundles.PluginName, register: trustbundles.Register},
	{name: certificaterequests.SubjectRestriction, register: certificaterequests.RegisterSubjectRestriction},
	{name: denyexternalips.PluginName, register: denyexternalips.Register, optional: true},
	{name: listbounds.PluginName, register: listbounds.Register},
	// What users bring sees what the plugins above have made, and the checks above see what users' webhooks have made.
	{name: mutatingpolicy.PluginName, register: asked.RegisterMutatingPolicy},
	{name: mutatingwebhook.PluginName, register: asked.RegisterMutatingWebhook, check: webhookconfig.Check},
	{name: validatingpolicy.PluginName, register: asked.RegisterValidatingPolicy},
	{name: validatingwebhook.PluginName, register: asked.RegisterValidatingWebhook, check: webhookconfig.Check},
	// Last: what another plugin refuses is not charged.
	{name: resourcequota.PluginName, register: resourcequota.Register, check: resourcequota.Check},
}

// ReadConfiguration returns what the file says about plugins; without a path that is nothing. An error names the path
// in the file.
func ReadConfiguration(path string) (pluginconfig.Plugins, error) {
	configurable := map[string]func([]byte) error{}
	for _, p := range plugins {
		if p.check != nil {
			configurable[p.name] = p.check
		}
	}
	return pluginconfig.Read(path, configurable)
}

// Standard are the names of the plugins that are on by themselves, in their order.
func Standard() []string { return names(func(p plugin) bool { return !p.optional }) }

// Optional are the names of those that are off unless an operator names them.
func Optional() []string { return names(func(p plugin) bool { return p.optional }) }

func names(which func(plugin) bool) []string {
	var found []string
	for _, p := range plugins {
		if which(p) {
			found = append(found, p.name)
		}
	}
	return found
}

// CheckNames says what is wrong with the names of plugins that an operator wants to be on, and to be off.
func CheckNames(enable, disable []string) error {
	known := names(func(plugin) bool { return true })
	var errs []error
	for _, list := range []struct {
		flag  string
		names []string
	}{{"--enable-admission-plugins", enable}, {"--disable-admission-plugins", disable}} {
		for _, name := range list.names {
			if !slices.Contains(known, name) {
				errs = append(
					errs,
					fmt.Errorf("%s: %q is no admission plugin of this server: on by themselves are %s, "+
						"off are %s", list.flag, name, strings.Join(Standard(), ", "), strings.Join(Optional(), ", ")),
				)
			}
		}
	}
	for _, name := range disable {
		if slices.Contains(enable, name) {
			errs = append(
				errs,
				fmt.Errorf("--disable-admission-plugins: %q is in --enable-admission-plugins too", name),
			)
		}
	}
	return errors.Join(errs...)
}

// enabled are the plugins that are on: all but the optional ones, as an operator wants it.
func enabled(enable, disable []string) []plugin {
	return slices.DeleteFunc(slices.Clone(plugins), func(p plugin) bool {
		return slices.Contains(disable, p.name) || p.optional && !slices.Contains(enable, p.name)
	})
}

// New returns the chain. Each plugin gets what it wants of c; one that lacks something is an error.
func New(c Config) (admission.Interface, error) {
	return build(enabled(c.Enabled, c.Disabled), c.Plugins, c.initializers())
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
