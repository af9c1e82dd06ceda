package legacytoken

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/apiserver/internal/authn/satoken"
)

// look gives the Secret what it lacks, or deletes it. A conflict with a faster writer is no failure: the write wakes
// the Secret up again.
func (k *Keeper) look(ctx context.Context, t task) error {
	in, err := k.observe(t)
	if in.Secret == nil || err != nil {
		return err
	}
	plan := Decide(in)
	if plan.Delete {
		// The cache may not have the account yet: only what the store says is a reason to delete.
		if in.Account, err = k.storedAccount(ctx, in.Secret); err != nil {
			return err
		}
		plan = Decide(in)
	}
	switch {
	case plan.Delete:
		err = k.delete(ctx, in.Secret)
	case plan.Update != nil:
		err = k.update(ctx, plan)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// observe reads what the caches have. Without the Secret there is nothing to decide.
func (k *Keeper) observe(t task) (Input, error) {
	in := Input{Signs: k.Issuer != nil}
	var err error
	if in.Secret, err = cached[corev1.Secret](k.secrets, t.namespace, t.secret); in.Secret == nil || err != nil {
		return in, err
	}
	if in.Account, err = cached[corev1.ServiceAccount](k.Accounts, t.namespace,
		in.Secret.Annotations[corev1.ServiceAccountNameKey]); err != nil {
		return in, err
	}
	published, err := cached[corev1.ConfigMap](k.published, metav1.NamespaceSystem, rootCA)
	if published != nil {
		in.RootCA = []byte(published.Data[corev1.ServiceAccountRootCAKey])
	}
	return in, err
}

// update writes the Secret at the version that was read, so that no other Secret of its name is written over.
func (k *Keeper) update(ctx context.Context, plan Plan) error {
	secret := plan.Update
	if plan.Sign {
		token, err := k.Issuer.IssueLegacy(plan.Claims)
		if err != nil {
			return err
		}
		setData(secret, corev1.ServiceAccountTokenKey, []byte(token))
	}
	err := failpoint.Around("apiserver/legacytoken.update", func() error {
		_, err := k.Client.CoreV1().Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("filling the Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

func (k *Keeper) delete(ctx context.Context, secret *corev1.Secret) error {
	err := failpoint.Around("apiserver/legacytoken.delete", func() error {
		return k.Client.CoreV1().Secrets(secret.Namespace).Delete(ctx, secret.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion}})
	})
	if err != nil {
		return fmt.Errorf("deleting the Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// unlist takes a Secret that is gone off its account's list, unless there is another one of its name.
func (k *Keeper) unlist(ctx context.Context, t task) error {
	accounts := k.Client.CoreV1().ServiceAccounts(t.namespace)
	account, err := accounts.Get(ctx, t.account, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the ServiceAccount %s/%s: %w", t.namespace, t.account, err)
	}
	if t.accountUID != "" && t.accountUID != account.UID || !satoken.Lists(account, t.secret) {
		return nil
	}
	_, err = k.Client.CoreV1().Secrets(t.namespace).Get(ctx, t.secret, metav1.GetOptions{})
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the Secret %s/%s: %w", t.namespace, t.secret, err)
	}
	err = failpoint.Around("apiserver/legacytoken.unlist", func() error {
		_, err := accounts.Update(ctx, without(account, t.secret), metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("taking the Secret %s off the list of the ServiceAccount %s/%s: %w", t.secret, t.namespace,
			t.account, err)
	}
	return nil
}

// storedAccount is the account that the Secret names, as the store has it, or nil.
func (k *Keeper) storedAccount(ctx context.Context, secret *corev1.Secret) (*corev1.ServiceAccount, error) {
	name := secret.Annotations[corev1.ServiceAccountNameKey]
	account, err := k.Client.CoreV1().ServiceAccounts(secret.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ServiceAccount %s/%s: %w", secret.Namespace, name, err)
	}
	return account, nil
}

// cached is what an informer has of the name; nil: nothing.
func cached[O any](of cache.SharedIndexInformer, namespace, name string) (object *O, err error) {
	found, exists, err := of.GetIndexer().GetByKey(cache.NewObjectName(namespace, name).String())
	if err != nil {
		return nil, fmt.Errorf("reading %s/%s from the cache: %w", namespace, name, err)
	}
	if exists {
		object, _ = found.(*O)
	}
	return object, nil
}
