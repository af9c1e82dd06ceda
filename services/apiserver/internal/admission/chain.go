// Package admission is the one list of admission plugins, in the order in which they see a request.
package admission

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/services/apiserver/internal/admission/listbounds"
	"keelson.dev/services/apiserver/internal/admission/noderestriction"
	"keelson.dev/services/apiserver/internal/admission/priority"
	"keelson.dev/services/apiserver/internal/admission/serviceaccount"
	"keelson.dev/services/apiserver/internal/admission/tolerationseconds"
)

// Config is what plugins look things up with.
type Config struct {
	// Client reads the API with all rights.
	Client kubernetes.Interface
	// Informers keep in memory what plugins read for every request.
	Informers informers.SharedInformerFactory
}

// protected are the namespaces that cannot be deleted.
var protected = sets.New(metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic)

// New returns the chain: first every plugin changes the request in this order, then every plugin checks the result.
func New(c Config) (admission.Interface, error) {
	namespaces, err := lifecycle.NewLifecycle(protected)
	if err != nil {
		return nil, fmt.Errorf("building the plugin %s: %w", lifecycle.PluginName, err)
	}
	namespaces.SetExternalKubeInformerFactory(c.Informers)
	namespaces.SetExternalKubeClientSet(c.Client)
	if err := admission.ValidateInitialization(namespaces); err != nil {
		return nil, fmt.Errorf("building the plugin %s: %w", lifecycle.PluginName, err)
	}
	return admission.NewChainHandler(
		namespaces,
		serviceaccount.New(c.Client, c.Informers),
		noderestriction.New(c.Client),
		priority.New(c.Client, c.Informers),
		tolerationseconds.New(),
		listbounds.New(),
	), nil
}
