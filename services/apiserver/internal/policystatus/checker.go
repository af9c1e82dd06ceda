// Package policystatus tells in the status of ValidatingAdmissionPolicies what their expressions would not find in the
// kinds that they are about.
//
// It is a part of the apiserver because it compiles expressions as admission does. Every apiserver runs it: what it
// writes follows from the policy alone, at the version that was read, so that they do no harm to each other.
package policystatus

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"keelson.dev/kit/contained"
	"keelson.dev/kit/failpoint"
	"keelson.dev/kit/follow"
)

// What fails is tried again after retryFirst up to retryLast.
const (
	retryFirst = 100 * time.Millisecond
	retryLast  = 15 * time.Second
)

// Config is what a Checker works with.
type Config struct {
	Client admissionregistrationclient.ValidatingAdmissionPolicyInterface
	// Policies are all policies. The caller runs the informer.
	Policies cache.SharedIndexInformer
	// Check finds what is wrong with the expressions of a policy.
	Check func(*admissionregistrationv1.ValidatingAdmissionPolicy) []admissionregistrationv1.ExpressionWarning
	Log   *zap.Logger
}

// Checker writes the status of policies.
type Checker struct {
	Config
	queue  workqueue.TypedRateLimitingInterface[string]
	synced cache.InformerSynced
}

// New returns a Checker, which does nothing before Run.
func New(c Config) (*Checker, error) {
	k := &Checker{Config: c, queue: workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryFirst, retryLast))}
	followed, err := c.Policies.AddEventHandler(follow.Handler(
		func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			if due(p) {
				k.queue.Add(p.Name)
			}
		}, func(*admissionregistrationv1.ValidatingAdmissionPolicy) {}))
	if err != nil {
		return nil, fmt.Errorf("watching ValidatingAdmissionPolicies: %w", err)
	}
	k.synced = followed.HasSynced
	return k, nil
}

// Run writes the status of policies until ctx ends.
func (k *Checker) Run(ctx context.Context) {
	var all contained.Group
	if cache.WaitForCacheSync(ctx.Done(), k.synced) {
		all.Go("checking policies", func() { k.work(ctx) }, nil)
	}
	<-ctx.Done()
	k.queue.ShutDown()
	all.Wait()
}

func (k *Checker) work(ctx context.Context) {
	for {
		name, shutdown := k.queue.Get()
		if shutdown {
			return
		}
		var err error
		if broken := contained.Do("checking a policy", func() { err = k.look(ctx, name) }); broken != nil {
			err = broken
		}
		if err == nil || ctx.Err() != nil {
			k.queue.Forget(name)
		} else {
			k.Log.Warn("checking a policy", zap.String("policy", name), zap.Error(err))
			k.queue.AddRateLimited(name)
		}
		k.queue.Done(name)
	}
}

// look writes the status of a policy if it has none. Losing to a faster writer is no failure: its write comes by the
// watch.
func (k *Checker) look(ctx context.Context, name string) error {
	object, exists, err := k.Policies.GetIndexer().GetByKey(name)
	if err != nil || !exists {
		return err
	}
	p, ok := object.(*admissionregistrationv1.ValidatingAdmissionPolicy)
	if !ok || !due(p) {
		return nil
	}
	err = failpoint.Around("apiserver/policystatus.update", func() error {
		_, err := k.Client.UpdateStatus(ctx, decide(p, k.Check(p)), metav1.UpdateOptions{})
		return err
	})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of the ValidatingAdmissionPolicy %s: %w", name, err)
	}
	return nil
}
