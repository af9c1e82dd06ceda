// Package limitranger is the admission plugin LimitRanger: it holds single Pods, containers and claims to the ranges of
// their namespace, and gives containers the default requests and limits.
package limitranger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	"keelson.dev/services/apiserver/internal/admission/podrequest"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "LimitRanger"

// Plugin reads the ranges from memory: one that was made a moment ago may not hold yet.
type Plugin struct {
	*admission.Handler
	ranges corelisters.LimitRangeLister
}

var (
	_ admission.MutationInterface                  = &Plugin{}
	_ admission.ValidationInterface                = &Plugin{}
	_ initializer.WantsExternalKubeInformerFactory = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
	})
}

// SetExternalKubeInformerFactory implements WantsExternalKubeInformerFactory. The plugin admits nothing before the
// informer has read the ranges.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	ranges := factory.Core().V1().LimitRanges()
	p.ranges = ranges.Lister()
	p.SetReadyFunc(ranges.Informer().HasSynced)
}

// ValidateInitialization implements InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	if p.ranges == nil {
		return errors.New("it has no informers")
	}
	return nil
}

// Admit completes a new Pod. What a Pod asks for changes later by a resize only, which says all that it wants.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, err := podrequest.Pod(a)
	if pod == nil || err != nil || a.GetOperation() != admission.Create {
		return err
	}
	ranges, err := p.of(a)
	if err != nil {
		return err
	}
	complete(pod, ranges)
	return nil
}

// Validate refuses new and resized Pods, and new and changed claims, that are out of a range.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	var check func([]*corev1.LimitRange) []error
	switch obj := a.GetObject().(type) {
	case *corev1.Pod:
		if !podrequest.Sizes(a) {
			return nil
		}
		check = func(ranges []*corev1.LimitRange) []error { return checkPod(obj, ranges) }
	case *corev1.PersistentVolumeClaim:
		if obj.DeletionTimestamp != nil || a.GetSubresource() != "" {
			return nil
		}
		check = func(ranges []*corev1.LimitRange) []error { return checkClaim(obj, ranges) }
	}
	if check == nil {
		return nil
	}
	ranges, err := p.of(a)
	if err != nil {
		return err
	}
	if errs := check(ranges); len(errs) > 0 {
		return admission.NewForbidden(a, utilerrors.NewAggregate(errs))
	}
	return nil
}

// of returns the ranges of the request's namespace, by name: the first that has a default gives it.
func (p *Plugin) of(a admission.Attributes) ([]*corev1.LimitRange, error) {
	if !p.WaitForReady() {
		return nil, admission.NewForbidden(a, errors.New("not yet ready to handle request"))
	}
	ranges, err := p.ranges.LimitRanges(a.GetNamespace()).List(labels.Everything())
	if err != nil {
		return nil, admission.NewForbidden(a, fmt.Errorf("listing the LimitRanges: %w", err))
	}
	slices.SortFunc(ranges, func(x, y *corev1.LimitRange) int { return strings.Compare(x.Name, y.Name) })
	return ranges, nil
}
