package server

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic"
)

// admit builds the admission chain.
func (s *Server) admit() error {
	plugin, err := lifecycle.NewLifecycle(sets.New(metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic))
	if err != nil {
		return fmt.Errorf("building the admission chain: %w", err)
	}
	var none dynamic.Interface
	init := initializer.New(s.client, none, s.informers, s.authority, utilfeature.DefaultFeatureGate, s.config.EffectiveVersion, s.config.DrainedNotify(), nil)
	init.Initialize(plugin)
	if err := admission.ValidateInitialization(plugin); err != nil {
		return fmt.Errorf("building the admission chain: %w", err)
	}
	s.config.AdmissionControl = plugin
	return nil
}
