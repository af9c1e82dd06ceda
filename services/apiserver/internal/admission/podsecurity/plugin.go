// Package podsecurity is the admission plugin PodSecurity: it holds Pods to the Pod Security Standards that the labels
// of their namespace ask for. What the standards are and what follows from them is the library's,
// k8s.io/pod-security-admission; this is how it meets the requests.
package podsecurity

import (
	"context"
	"errors"
	"fmt"
	"io"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	standards "k8s.io/pod-security-admission/admission"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"keelson.dev/services/apiserver/internal/admission/pluginconfig"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "PodSecurity"

// Plugin finds a namespace in memory, and in the store one that is not there yet: labels that were changed a moment ago
// may not hold yet.
type Plugin struct {
	*admission.Handler
	standards  standards.Admission
	client     kubernetes.Interface
	namespaces corelisters.NamespaceLister
}

// WantsPods is what a plugin implements that reads the Pods of a namespace.
type WantsPods interface {
	SetPods(pods Pods)
}

var (
	_ admission.ValidationInterface                = &Plugin{}
	_ initializer.WantsExternalKubeClientSet       = &Plugin{}
	_ initializer.WantsExternalKubeInformerFactory = &Plugin{}
	_ WantsPods                                    = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(file io.Reader) (admission.Interface, error) {
		data, err := pluginconfig.Content(file)
		if err != nil {
			return nil, err
		}
		return newPlugin(data)
	})
}

// newPlugin returns a plugin that is configured by what a file says.
func newPlugin(file []byte) (*Plugin, error) {
	configuration, err := parse(file)
	if err != nil {
		return nil, err
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	return &Plugin{
		Handler: admission.NewHandler(admission.Create, admission.Update),
		standards: standards.Admission{
			Configuration: configuration, Evaluator: evaluator, Metrics: recorder(), PodSpecExtractor: templates,
		},
	}, nil
}

// SetExternalKubeClientSet implements WantsExternalKubeClientSet.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }

// SetExternalKubeInformerFactory implements WantsExternalKubeInformerFactory. Nothing waits for the informer: until it
// has a namespace, that is read from the store.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.namespaces = factory.Core().V1().Namespaces().Lister()
}

// SetPods implements WantsPods.
func (p *Plugin) SetPods(pods Pods) { p.standards.PodLister = pods }

// ValidateInitialization implements InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	switch {
	case p.client == nil:
		return errors.New("it has no client")
	case p.namespaces == nil:
		return errors.New("it has no informers")
	case p.standards.PodLister == nil:
		return errors.New("it has no way to read Pods")
	}
	p.standards.NamespaceGetter = standards.NamespaceGetterFromListerAndClient(p.namespaces, p.client)
	if err := p.standards.CompleteConfiguration(); err != nil {
		return err
	}
	return p.standards.ValidateConfiguration()
}

// templates finds the Pods and Pod templates of the API's kinds.
var templates standards.DefaultPodSpecExtractor

// Validate refuses a Pod that violates what its namespace enforces, and labels of a namespace that say nothing. It
// warns of Pods, templates and existing Pods that violate what the namespace warns of, and tells the audit log.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	resource := a.GetResource().GroupResource()
	if resource != corev1.Resource("namespaces") && !templates.HasPodSpec(resource) {
		return nil
	}
	return follow(ctx, p.standards.Validate(ctx, request{a}))
}

// follow does what the library answers, which it may give to others as well.
func follow(ctx context.Context, answer *admissionv1.AdmissionResponse) error {
	for _, text := range answer.Warnings {
		warning.AddWarning(ctx, "", text)
	}
	for key, value := range answer.AuditAnnotations {
		audit.AddAuditAnnotation(ctx, api.AuditAnnotationPrefix+key, value)
	}
	if answer.Allowed {
		return nil
	}
	if answer.Result == nil {
		return fmt.Errorf("%s refuses the request without a reason", PluginName)
	}
	return &apierrors.StatusError{ErrStatus: *answer.Result}
}
