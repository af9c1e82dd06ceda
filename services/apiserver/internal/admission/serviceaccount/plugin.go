// Package serviceaccount is the admission plugin ServiceAccount: every Pod runs as an account of its namespace and gets
// the account's token and image pull secrets.
package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"keelson.dev/kit/podview"
	"keelson.dev/services/apiserver/internal/admission/podrequest"
)

const (
	suffixLength = 5
	// The default account of a new namespace is made by a controller: a Pod created at once waits for it.
	retryInterval = 100 * time.Millisecond
	retryTimeout  = 3 * time.Second
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "ServiceAccount"

// Plugin completes Pods from the accounts in memory.
type Plugin struct {
	*admission.Handler
	accounts corelisters.ServiceAccountLister
	client   kubernetes.Interface
}

var (
	_ admission.MutationInterface                  = &Plugin{}
	_ initializer.WantsExternalKubeClientSet       = &Plugin{}
	_ initializer.WantsExternalKubeInformerFactory = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create)}, nil
	})
}

// SetExternalKubeClientSet implements WantsExternalKubeClientSet.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }

// SetExternalKubeInformerFactory implements WantsExternalKubeInformerFactory. The plugin admits nothing before the
// informer has read the accounts.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	accounts := factory.Core().V1().ServiceAccounts()
	p.accounts = accounts.Lister()
	p.SetReadyFunc(accounts.Informer().HasSynced)
}

// ValidateInitialization implements InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	switch {
	case p.client == nil:
		return errors.New("it has no client")
	case p.accounts == nil:
		return errors.New("it has no informers")
	}
	return nil
}

// Admit completes a new Pod. Mirror Pods stay as the Node made them.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, err := podrequest.Pod(a)
	if pod == nil || err != nil || podview.IsMirror(pod) {
		return err
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("not yet ready to handle request"))
	}
	setName(pod)
	account, err := p.account(ctx, a.GetNamespace(), pod.Spec.ServiceAccountName)
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("error looking up service account %s/%s: %w", a.GetNamespace(),
			pod.Spec.ServiceAccountName, err))
	}
	apply(pod, account, rand.String(suffixLength))
	return nil
}

// account looks in memory, then in the store, and waits for a default account.
func (p *Plugin) account(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	account, err := p.accounts.ServiceAccounts(namespace).Get(name)
	if !apierrors.IsNotFound(err) {
		return account, err
	}
	if name != DefaultName {
		return p.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	var last error
	waited := wait.PollUntilContextTimeout(ctx, retryInterval, retryTimeout, true, func(ctx context.Context) (bool,
		error) {
		account, last = p.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
		if last == nil {
			return true, nil
		}
		if apierrors.IsNotFound(last) {
			return false, nil
		}
		return false, last
	})
	if waited != nil && last == nil {
		last = waited
	}
	return account, last
}
