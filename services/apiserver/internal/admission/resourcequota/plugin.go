// Package resourcequota is the admission plugin ResourceQuota: it limits what all objects of a namespace use together
// to the quotas of the namespace. The library decides and batches (NewQuotaEvaluator). kit/quota computes what single
// objects use, and accessor reads and writes quotas. The library's own plugin reads a quota that was changed meanwhile
// from the informer only, so that with several servers requests fail by a conflict. A configuration names the resources
// that no object may use unless a quota allows it; an update that moves an object is limited as a create is.
package resourcequota

import (
	"context"
	"errors"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	libraryquota "k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	libraryapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/kit/quota"
	"keelson.dev/services/apiserver/internal/admission/pluginconfig"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = libraryquota.PluginName

// workers is how many namespaces are looked at at once.
const workers = 5

// Plugin charges the quotas of a namespace for what is made in it.
type Plugin struct {
	*admission.Handler
	quotas    accessor
	drained   <-chan struct{}
	limited   *libraryapi.Configuration
	kinds     quotav1.Registry
	evaluator libraryquota.Evaluator
}

var (
	_ admission.ValidationInterface                = &Plugin{}
	_ initializer.WantsExternalKubeClientSet       = &Plugin{}
	_ initializer.WantsExternalKubeInformerFactory = &Plugin{}
	_ initializer.WantsDrainedNotification         = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(file io.Reader) (admission.Interface, error) {
		data, err := pluginconfig.Content(file)
		if err != nil {
			return nil, err
		}
		limited, err := parse(data)
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update),
			quotas: accessor{latest: newLatest()}, limited: limited}, err
	})
}

// SetExternalKubeClientSet implements WantsExternalKubeClientSet.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.quotas.client = client }

// SetDrainedNotification implements WantsDrainedNotification.
func (p *Plugin) SetDrainedNotification(drained <-chan struct{}) { p.drained = drained }

// SetExternalKubeInformerFactory implements WantsExternalKubeInformerFactory. The plugin admits nothing before the
// informer has read the quotas.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	quotas := factory.Core().V1().ResourceQuotas()
	p.quotas.lister = quotas.Lister()
	p.SetReadyFunc(quotas.Informer().HasSynced)
}

// ValidateInitialization implements InitializationValidator. When nothing is missing, the evaluator starts.
func (p *Plugin) ValidateInitialization() error {
	switch {
	case p.quotas.client == nil:
		return errors.New("it has no client")
	case p.quotas.lister == nil:
		return errors.New("it has no informers")
	case p.drained == nil:
		return errors.New("it is not told of the end")
	}
	p.kinds = generic.NewRegistry(evaluators())
	p.evaluator = libraryquota.NewQuotaEvaluator(&p.quotas, quota.Ignored, p.kinds, nil, p.limited, workers, p.drained)
	return nil
}

// Validate refuses what would exceed a quota, and charges the quotas for the rest. A dry run charges nothing.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetNamespace() == "" || a.GetResource().GroupResource() == corev1.Resource("namespaces") {
		return nil
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, errors.New("not yet ready to handle request"))
	}
	if bounded, err := p.quotas.any(a.GetNamespace()); err != nil ||
		!bounded && len(p.limited.LimitedResources) == 0 {
		return err
	}
	of := asAsked(a)
	err := p.checkMove(of)
	if err == nil {
		err = p.evaluator.Evaluate(of)
	}
	if closed := (uncovered)(nil); errors.As(err, &closed) {
		return admission.NewForbidden(of, err)
	}
	return err
}

// asked is a request whose object is called as the client has called it: by the prefix of a generated name, so that one
// refusal reads as the next.
type asked struct {
	admission.Attributes
	name string
}

// GetName implements Attributes.
func (a asked) GetName() string { return a.name }

// suffix is how many characters the server appends to the prefix of a generated name.
const suffix = 5

func asAsked(a admission.Attributes) admission.Attributes {
	object, err := meta.Accessor(a.GetObject())
	if err != nil || a.GetOperation() != admission.Create {
		return a
	}
	prefix, name := object.GetGenerateName(), object.GetName()
	if prefix == "" || name != "" && (!strings.HasPrefix(name, prefix) || len(name) != len(prefix)+suffix) {
		return a
	}
	return asked{a, prefix}
}
