// Package serviceaccount is the admission plugin ServiceAccount: every Pod runs as an account of its namespace and gets
// the account's token and image pull secrets.
package serviceaccount

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	"keelson.dev/kit/podview"
	"keelson.dev/services/apiserver/internal/admission/lookup"
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
	*lookup.Handler[corelisters.ServiceAccountLister]
}

var (
	_ admission.MutationInterface = &Plugin{}
)

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{lookup.NewHandler(accounts, admission.Create)}, nil
	})
}

func accounts(factory informers.SharedInformerFactory) lookup.Informer[corelisters.ServiceAccountLister] {
	return factory.Core().V1().ServiceAccounts()
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
	stored := p.Client.CoreV1().ServiceAccounts(namespace)
	account, last := lookup.Get(ctx, name, p.Objects.ServiceAccounts(namespace), stored)
	if !apierrors.IsNotFound(last) || name != DefaultName {
		return account, last
	}
	waited := wait.PollUntilContextTimeout(ctx, retryInterval, retryTimeout, false, func(ctx context.Context) (bool,
		error) {
		account, last = stored.Get(ctx, name, metav1.GetOptions{})
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
