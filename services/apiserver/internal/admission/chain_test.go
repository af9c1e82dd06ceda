package admission

import (
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	webhookinitializer "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"

	"keelson.dev/services/apiserver/internal/admission/noderestriction"
	"keelson.dev/services/apiserver/internal/admission/podsecurity"
	"keelson.dev/services/apiserver/internal/admission/podtopologylabels"
)

// somewhere finds every Service at one place.
type somewhere struct{}

// ResolveEndpoint implements ServiceResolver.
func (somewhere) ResolveEndpoint(string, string, int32) (*url.URL, error) { return &url.URL{}, nil }

// complete has everything that a plugin may want.
func complete(t testing.TB) Config {
	t.Helper()
	client := withoutDocuments{fake.NewClientset()}
	drained := make(chan struct{})
	t.Cleanup(func() { close(drained) })
	return Config{
		ServerID: "this",
		Client:   client, Dynamic: dynamicfake.NewSimpleDynamicClient(scheme.Scheme),
		Informers:  informers.NewSharedInformerFactory(client, time.Hour),
		Pods:       func(context.Context, string) ([]corev1.Pod, error) { return nil, nil },
		Nodes:      func(context.Context) ([]corev1.Node, error) { return nil, nil },
		Node:       func(context.Context, string) (*corev1.Node, error) { return &corev1.Node{}, nil },
		RESTMapper: meta.NewDefaultRESTMapper(nil),
		Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer(),
		Features:   utilfeature.DefaultFeatureGate,
		Version:    compatibility.DefaultBuildEffectiveVersion(),
		Drained:    drained,
		Services:   somewhere{},
		Webhooks:   webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, nil, nil, nil),
	}
}

// The chain that is served has what each of its plugins wants.
func TestNew(t *testing.T) {
	chain, err := New(complete(t))
	if err != nil {
		t.Fatal(err)
	}
	if !chain.Handles(admission.Connect) { // of ours none does
		t.Error("webhooks do not see connections")
	}
}

// The order is part of what the chain does: the account's secrets and the class's priority are there when the
// checks run, and nothing is looked up for a namespace that ends.
func TestOrder(t *testing.T) {
	want := []string{
		"NamespaceLifecycle",
		"ServiceAccount",
		"NodeRestriction",
		"TaintNodesByCondition",
		"AlwaysPullImages",
		"PodSecurity",
		"PodNodeSelector",
		"Priority",
		"LimitRanger",
		"DefaultTolerationSeconds",
		"EventRateLimit",
		"PodTopologyLabels",
		"DefaultStorageClass",
		"DefaultIngressClass",
		"StorageObjectInUseProtection",
		"PodGroupProtection",
		"OwnerReferencesPermissionEnforcement",
		"RuntimeClass",
		"PersistentVolumeClaimResize",
		"CertificateApproval",
		"CertificateSigning",
		"ClusterTrustBundleAttest",
		"CertificateSubjectRestriction",
		"DenyServiceExternalIPs",
		"ListBounds",
		"MutatingAdmissionPolicy",
		"MutatingAdmissionWebhook",
		"ValidatingAdmissionPolicy",
		"ValidatingAdmissionWebhook",
		"ResourceQuota",
	}
	optional := []string{
		"AlwaysPullImages",
		"PodNodeSelector",
		"EventRateLimit",
		"OwnerReferencesPermissionEnforcement",
		"DenyServiceExternalIPs",
	}
	if got := Optional(); !slices.Equal(got, optional) {
		t.Errorf("off are %v", got)
	}
	names := func(rows []plugin) (got []string) {
		for _, p := range rows {
			got = append(got, p.name)
		}
		return got
	}
	if got := names(enabled(append(optional, "ListBounds"), nil)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := names(enabled(optional, []string{"Priority", "ResourceQuota"})); len(got) != len(want)-2 ||
		slices.Contains(got, "Priority") || slices.Contains(got, "ResourceQuota") {
		t.Errorf("without two: %v", got)
	}
	want = slices.DeleteFunc(want, func(name string) bool { return slices.Contains(optional, name) })
	if got := names(enabled(nil, nil)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The error for an unknown plugin lists the plugins that there are, and no plugin can be both on and off.
func TestCheckNames(t *testing.T) {
	if err := CheckNames([]string{"DenyServiceExternalIPs", "NodeRestriction"}, []string{"Priority"}); err != nil {
		t.Error(err)
	}
	const known = ` is no admission plugin of this server: on by themselves are NamespaceLifecycle, `
	for _, row := range []struct {
		enable, disable []string
		want            string
	}{
		{[]string{"DenyServiceExternalIPs", "Nothing"}, nil, `--enable-admission-plugins: "Nothing"` + known},
		{nil, []string{"Nothing"}, `--disable-admission-plugins: "Nothing"` + known},
		{[]string{"Priority"}, []string{"Priority"},
			`--disable-admission-plugins: "Priority" is in --enable-admission-plugins too`},
	} {
		err := CheckNames(row.enable, row.disable)
		if err == nil || !strings.HasPrefix(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, %v: %v, want %s...", row.enable, row.disable, err, row.want)
		}
	}
}

// greedy is a plugin that wants everything.
type greedy struct{ got Config }

// Handles implements admission.Interface.
func (*greedy) Handles(admission.Operation) bool                  { return true }
func (g *greedy) SetAPIServerID(id string)                        { g.got.ServerID = id }
func (g *greedy) SetExternalKubeClientSet(c kubernetes.Interface) { g.got.Client = c }
func (g *greedy) SetDynamicClient(c dynamic.Interface)            { g.got.Dynamic = c }
func (g *greedy) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	g.got.Informers = f
}
func (g *greedy) SetRESTMapper(m meta.RESTMapper)                              { g.got.RESTMapper = m }
func (g *greedy) SetAuthorizer(a authorizer.Authorizer)                        { g.got.Authorizer = a }
func (g *greedy) InspectFeatureGates(f featuregate.FeatureGate)                { g.got.Features = f }
func (g *greedy) InspectEffectiveVersion(v basecompatibility.EffectiveVersion) { g.got.Version = v }
func (g *greedy) SetDrainedNotification(d <-chan struct{})                     { g.got.Drained = d }
func (g *greedy) SetServiceResolver(r webhook.ServiceResolver)                 { g.got.Services = r }
func (g *greedy) SetAuthenticationInfoResolverWrapper(w webhook.AuthenticationInfoResolverWrapper) {
	g.got.Webhooks = w
}
func (g *greedy) SetPods(pods podsecurity.Pods)        { g.got.Pods = pods }
func (g *greedy) SetNodes(nodes noderestriction.Nodes) { g.got.Nodes = nodes }

// SetNode implements WantsNode.
func (g *greedy) SetNode(node podtopologylabels.Node) { g.got.Node = node }
func (*greedy) ValidateInitialization() error         { return nil }

var (
	_ initializer.WantsAPIServerID                              = &greedy{}
	_ initializer.WantsExternalKubeClientSet                    = &greedy{}
	_ initializer.WantsDynamicClient                            = &greedy{}
	_ initializer.WantsExternalKubeInformerFactory              = &greedy{}
	_ initializer.WantsRESTMapper                               = &greedy{}
	_ initializer.WantsAuthorizer                               = &greedy{}
	_ initializer.WantsFeatures                                 = &greedy{}
	_ initializer.WantsEffectiveVersion                         = &greedy{}
	_ initializer.WantsDrainedNotification                      = &greedy{}
	_ webhookinitializer.WantsServiceResolver                   = &greedy{}
	_ webhookinitializer.WantsAuthenticationInfoResolverWrapper = &greedy{}
	_ podsecurity.WantsPods                                     = &greedy{}
	_ noderestriction.WantsNodes                                = &greedy{}
)

func row(name string, p admission.Interface) plugin {
	return plugin{name: name, register: func(registered *admission.Plugins) {
		registered.Register(name, func(io.Reader) (admission.Interface, error) { return p, nil })
	}}
}

// A plugin gets whatever it wants.
func TestInitializers(t *testing.T) {
	c, p := complete(t), &greedy{}
	if _, err := build([]plugin{row("Greedy", p)}, nil, c.initializers()); err != nil {
		t.Fatal(err)
	}
	got := p.got
	for what, same := range map[string]bool{
		"the server's id": got.ServerID == c.ServerID, "the client": got.Client == c.Client,
		"the dynamic client": got.Dynamic == c.Dynamic, "the informers": got.Informers == c.Informers,
		"the REST mapper": got.RESTMapper != nil, "the authorizer": got.Authorizer != nil,
		"the features": got.Features == c.Features, "the version": got.Version == c.Version,
		"the end": got.Drained == c.Drained, "the services": got.Services == c.Services,
		"the identity to webhooks": got.Webhooks != nil, "the Pods": got.Pods != nil,
		"the Nodes": got.Nodes != nil, "a Node": got.Node != nil,
	} {
		if !same {
			t.Errorf("the plugin did not get %s", what)
		}
	}
}

// lacking is a plugin that no configuration satisfies.
type lacking struct{ greedy }

// ValidateInitialization says what is missing.
func (*lacking) ValidateInitialization() error { return errors.New("it has no moon") }

// A plugin that lacks something stops the start with one sentence that names both.
func TestLacking(t *testing.T) {
	c := complete(t)
	noInformers := admission.PluginInitializers{clientOnly{c.Client}}
	noObjects := slices.DeleteFunc(c.initializers().(admission.PluginInitializers),
		func(i admission.PluginInitializer) bool { _, is := i.(withObjects); return is })
	for name, r := range map[string]struct {
		rows        []plugin
		initializer admission.PluginInitializer
		want        string
	}{
		"a strange one": {[]plugin{row("Strange", &lacking{})}, c.initializers(),
			`failed to initialize admission plugin "Strange": it has no moon`},
		"ServiceAccount without anything": {only("ServiceAccount"), admission.PluginInitializers{},
			`failed to initialize admission plugin "ServiceAccount": it has no client`},
		"ServiceAccount with a client only": {only("ServiceAccount"), noInformers,
			`failed to initialize admission plugin "ServiceAccount": it has no informers`},
		"NodeRestriction without anything": {only("NodeRestriction"), admission.PluginInitializers{},
			`failed to initialize admission plugin "NodeRestriction": it has no client`},
		"NodeRestriction without Nodes": {only("NodeRestriction"), noObjects,
			`failed to initialize admission plugin "NodeRestriction": it has no way to read Nodes`},
		"PodTopologyLabels without Nodes": {only("PodTopologyLabels"), noObjects,
			`failed to initialize admission plugin "PodTopologyLabels": it has no way to read a Node`},
		"PodSecurity without anything": {only("PodSecurity"), admission.PluginInitializers{},
			`failed to initialize admission plugin "PodSecurity": it has no client`},
		"PodSecurity with a client only": {only("PodSecurity"), noInformers,
			`failed to initialize admission plugin "PodSecurity": it has no informers`},
		"PodSecurity without Pods": {only("PodSecurity"), noObjects,
			`failed to initialize admission plugin "PodSecurity": it has no way to read Pods`},
		"Priority without anything": {only("Priority"), admission.PluginInitializers{},
			`failed to initialize admission plugin "Priority": it has no client`},
		"Priority with a client only": {only("Priority"), noInformers,
			`failed to initialize admission plugin "Priority": it has no informers`},
		"LimitRanger with a client only": {only("LimitRanger"), noInformers,
			`failed to initialize admission plugin "LimitRanger": it has no informers`},
		"DefaultIngressClass with a client only": {only("DefaultIngressClass"), noInformers,
			`failed to initialize admission plugin "DefaultIngressClass": it has no informers`},
		"DefaultStorageClass with a client only": {only("DefaultStorageClass"), noInformers,
			`failed to initialize admission plugin "DefaultStorageClass": it has no informers`},
		"RuntimeClass without anything": {only("RuntimeClass"), admission.PluginInitializers{},
			`failed to initialize admission plugin "RuntimeClass": it has no client`},
		"RuntimeClass with a client only": {only("RuntimeClass"), noInformers,
			`failed to initialize admission plugin "RuntimeClass": it has no informers`},
		"ResourceQuota without anything": {only("ResourceQuota"), admission.PluginInitializers{},
			`failed to initialize admission plugin "ResourceQuota": it has no client`},
		"ResourceQuota with a client only": {only("ResourceQuota"), noInformers,
			`failed to initialize admission plugin "ResourceQuota": it has no informers`},
		"what wants nothing": {only("TaintNodesByCondition", "DefaultTolerationSeconds", "ListBounds"),
			admission.PluginInitializers{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := build(r.rows, nil, r.initializer); err != nil {
				got = err.Error()
			}
			if got != r.want {
				t.Errorf("%q, want %q", got, r.want)
			}
		})
	}
}

// only returns the rows of these plugins.
func only(names ...string) []plugin {
	return slices.DeleteFunc(slices.Clone(plugins), func(p plugin) bool { return !slices.Contains(names, p.name) })
}

// clientOnly gives plugins no more than a client.
type clientOnly struct{ client kubernetes.Interface }

// Initialize implements PluginInitializer.
func (c clientOnly) Initialize(p admission.Interface) {
	if wants, ok := p.(initializer.WantsExternalKubeClientSet); ok {
		wants.SetExternalKubeClientSet(c.client)
	}
}

// noting notes when it is asked.
type noting struct {
	name string
	did  *[]string
}

// Handles implements admission.Interface.
func (*noting) Handles(admission.Operation) bool { return true }

// Admit implements MutationInterface.
func (n *noting) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	*n.did = append(*n.did, n.name+" changes")
	return nil
}

// Validate implements ValidationInterface.
func (n *noting) Validate(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	*n.did = append(*n.did, n.name+" checks")
	return nil
}

// Plugins see a request in the order of their rows.
func TestBuild(t *testing.T) {
	var did []string
	chain, err := build([]plugin{row("B", &noting{"B", &did}), row("A", &noting{"A", &did})}, nil,
		admission.PluginInitializers{})
	if err != nil {
		t.Fatal(err)
	}
	a := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", "", schema.GroupVersionResource{}, "",
		admission.Create, nil, false, &user.DefaultInfo{})
	if err := chain.(admission.MutationInterface).Admit(t.Context(), a, nil); err != nil {
		t.Fatal(err)
	}
	if err := chain.(admission.ValidationInterface).Validate(t.Context(), a, nil); err != nil {
		t.Fatal(err)
	}
	if want := []string{"B changes", "A changes", "B checks", "A checks"}; !slices.Equal(did, want) {
		t.Errorf("%v, want %v", did, want)
	}
}
