package admission

import (
	"net/netip"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	webhookinitializer "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"

	"keelson.dev/services/apiserver/internal/admission/noderestriction"
	"keelson.dev/services/apiserver/internal/admission/pluginconfig"
	"keelson.dev/services/apiserver/internal/admission/podsecurity"
	"keelson.dev/services/apiserver/internal/admission/podtopologylabels"
)

// Config is what plugins may want. A plugin says so by the library's interfaces (WantsExternalKubeClientSet, ...).
type Config struct {
	// Plugins are the configurations of those that have one.
	Plugins pluginconfig.Plugins
	// Enabled are the names of optional plugins that are on, Disabled those of others that are off.
	Enabled, Disabled []string
	// ServerID tells this server from the others of its store.
	ServerID string
	// Client and Dynamic read the API with all rights.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Informers keep in memory what plugins read for every request.
	Informers informers.SharedInformerFactory
	// Pods reads the Pods of a namespace from the watch cache.
	Pods podsecurity.Pods
	// Nodes reads all Nodes from the watch cache, Node one of them.
	Nodes noderestriction.Nodes
	Node  podtopologylabels.Node
	// ServiceRanges are those of which Services get their addresses.
	ServiceRanges []netip.Prefix
	RESTMapper    meta.RESTMapper
	Authorizer    authorizer.Authorizer
	Features      featuregate.FeatureGate
	Version       compatibility.EffectiveVersion
	// Drained is closed when no request will come any more.
	Drained <-chan struct{}
	// Services finds the Services of webhooks, Webhooks how to identify to them.
	Services webhook.ServiceResolver
	Webhooks webhook.AuthenticationInfoResolverWrapper
}

func (c Config) initializers() admission.PluginInitializer {
	return admission.PluginInitializers{
		initializer.NewAPIServerIDInitializer(c.ServerID),
		initializer.New(c.Client, c.Dynamic, c.Informers, c.Authorizer, c.Features, c.Version, c.Drained, c.RESTMapper),
		webhookinitializer.NewPluginInitializer(c.Webhooks, c.Services),
		withoutReviews{},
		withObjects{c.Pods, c.Nodes, c.Node, c.ServiceRanges},
	}
}

// withObjects gives plugins the way to read Pods and Nodes, and the ranges of Services.
type withObjects struct {
	pods     podsecurity.Pods
	nodes    noderestriction.Nodes
	node     podtopologylabels.Node
	services []netip.Prefix
}

// Initialize implements PluginInitializer.
func (w withObjects) Initialize(p admission.Interface) {
	if wants, ok := p.(podsecurity.WantsPods); ok {
		wants.SetPods(w.pods)
	}
	if wants, ok := p.(noderestriction.WantsNodes); ok {
		wants.SetNodes(w.nodes)
	}
	if wants, ok := p.(podtopologylabels.WantsNode); ok {
		wants.SetNode(w.node)
	}
	if wants, ok := p.(noderestriction.WantsServiceRanges); ok {
		wants.SetServiceRanges(w.services)
	}
}

// reviews are asked for by who decides about requests: no webhook and no policy of users stands in the way of that.
var reviews = []schema.GroupResource{
	{Group: authenticationv1.GroupName, Resource: "selfsubjectreviews"},
	{Group: authenticationv1.GroupName, Resource: "tokenreviews"},
	{Group: authorizationv1.GroupName, Resource: "localsubjectaccessreviews"},
	{Group: authorizationv1.GroupName, Resource: "selfsubjectaccessreviews"},
	{Group: authorizationv1.GroupName, Resource: "selfsubjectrulesreviews"},
	{Group: authorizationv1.GroupName, Resource: "subjectaccessreviews"},
}

// withoutReviews tells plugins what is none of their business.
type withoutReviews struct{}

// Initialize implements PluginInitializer.
func (withoutReviews) Initialize(p admission.Interface) {
	if wants, ok := p.(initializer.WantsExcludedAdmissionResources); ok {
		wants.SetExcludedAdmissionResources(reviews)
	}
}
