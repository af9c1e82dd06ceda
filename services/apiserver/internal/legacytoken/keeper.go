package legacytoken

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"keelson.dev/kit/contained"
	"keelson.dev/kit/follow"
	"keelson.dev/services/apiserver/internal/authn/satoken"
)

const (
	workers = 2
	// What fails is tried again after retryFirst up to retryLast.
	retryFirst = 100 * time.Millisecond
	retryLast  = 15 * time.Second
	// cleanUpInterval is how often unused tokens are looked for. Their days are days.
	cleanUpInterval = 24 * time.Hour

	// rootCA is the ConfigMap that has the apiserver's CA in each namespace. That of kube-system is believed.
	rootCA = "kube-root-ca.crt"

	byAccount = "account"
)

// Config is what a Keeper works with.
type Config struct {
	Client kubernetes.Interface
	// Accounts are all ServiceAccounts. The caller runs the informer.
	Accounts cache.SharedIndexInformer
	// Issuer signs; nil: Secrets get no token here.
	Issuer *satoken.Issuer
	// CleanUpPeriod is how long a token stays unused before it is refused, and again before its Secret is deleted.
	CleanUpPeriod time.Duration
	Now           func() time.Time
	Log           *zap.Logger
}

// Keeper keeps the Secrets.
type Keeper struct {
	Config
	secrets, published cache.SharedIndexInformer
	queue              workqueue.TypedRateLimitingInterface[task]
	synced             []cache.InformerSynced
}

// task is to look at a Secret or, with an account, to take the Secret, which is gone, off the account's list.
type task struct {
	namespace, secret, account string
	accountUID                 types.UID
}

// New returns a Keeper, which does nothing before Run.
func New(c Config) (*Keeper, error) {
	k := &Keeper{
		Config: c,
		secrets: coreinformers.NewFilteredSecretInformer(c.Client, metav1.NamespaceAll, 0,
			cache.Indexers{byAccount: accountOf}, only("type", string(corev1.SecretTypeServiceAccountToken))),
		published: coreinformers.NewFilteredConfigMapInformer(c.Client, metav1.NamespaceSystem, 0, nil,
			only(metav1.ObjectNameField, rootCA)),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[task](retryFirst, retryLast)),
	}
	for _, w := range []struct {
		kind    string
		of      cache.SharedIndexInformer
		handler cache.ResourceEventHandler
	}{
		{"Secrets", k.secrets, follow.Handler(k.wake, k.gone)},
		{"ServiceAccounts", c.Accounts, follow.Handler(k.wakeOfAccount, k.wakeOfAccount)},
		{"ConfigMaps", k.published, follow.Changes(k.wakeAll)},
	} {
		followed, err := w.of.AddEventHandler(w.handler)
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", w.kind, err)
		}
		k.synced = append(k.synced, followed.HasSynced)
	}
	return k, nil
}

// only selects objects by the value of one field.
func only(field, value string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) { o.FieldSelector = fields.OneTermEqualSelector(field, value).String() }
}

// Run keeps the Secrets until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	var all contained.Group
	all.Go("watching Secrets with tokens", func() { k.secrets.RunWithContext(ctx) }, nil)
	all.Go("watching the root CA", func() { k.published.RunWithContext(ctx) }, nil)
	if cache.WaitForCacheSync(ctx.Done(), k.synced...) {
		for range workers {
			all.Go("keeping Secrets with tokens", func() { k.work(ctx) }, nil)
		}
		all.Go("cleaning up unused tokens", func() { k.cleanUpNowAndThen(ctx) }, nil)
	}
	<-ctx.Done()
	k.queue.ShutDown()
	all.Wait()
}

func (k *Keeper) wake(s *corev1.Secret) { k.queue.Add(task{namespace: s.Namespace, secret: s.Name}) }

func (k *Keeper) gone(s *corev1.Secret) {
	if name := s.Annotations[corev1.ServiceAccountNameKey]; name != "" {
		k.queue.Add(task{namespace: s.Namespace, secret: s.Name, account: name,
			accountUID: types.UID(s.Annotations[corev1.ServiceAccountUIDKey])})
	}
}

func (k *Keeper) wakeOfAccount(account *corev1.ServiceAccount) {
	k.wakeEach(k.secrets.GetIndexer().ByIndex(byAccount, accountKey(account.Namespace, account.Name)))
}

func (k *Keeper) wakeAll() { k.wakeEach(k.secrets.GetIndexer().List(), nil) }

// wakeEach takes what an indexer answers. The error is of an index that does not exist.
func (k *Keeper) wakeEach(secrets []any, _ error) {
	for _, object := range secrets {
		if s, ok := object.(*corev1.Secret); ok {
			k.wake(s)
		}
	}
}

// accountOf is the index of Secrets by the account that they name.
func accountOf(object any) ([]string, error) {
	s, ok := object.(*corev1.Secret)
	if !ok {
		return nil, nil
	}
	return []string{accountKey(s.Namespace, s.Annotations[corev1.ServiceAccountNameKey])}, nil
}

func accountKey(namespace, name string) string { return namespace + "/" + name }

// work does what is due until the queue is shut down.
func (k *Keeper) work(ctx context.Context) {
	for {
		t, shutdown := k.queue.Get()
		if shutdown {
			return
		}
		var err error
		if broken := contained.Do("keeping a Secret with a token", func() { err = k.do(ctx, t) }); broken != nil {
			err = broken
		}
		if err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
			k.Log.Warn("keeping a Secret with a token", zap.String("namespace", t.namespace),
				zap.String("secret", t.secret), zap.Error(err))
		}
		// Where a Secret has no room for what it lacks, its next change wakes it up.
		if err == nil || apierrors.IsInvalid(err) {
			k.queue.Forget(t)
		} else {
			k.queue.AddRateLimited(t)
		}
		k.queue.Done(t)
	}
}

func (k *Keeper) do(ctx context.Context, t task) error {
	if t.account != "" {
		return k.unlist(ctx, t)
	}
	return k.look(ctx, t)
}

// cleanUpNowAndThen looks for unused tokens until ctx ends.
func (k *Keeper) cleanUpNowAndThen(ctx context.Context) {
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if err := k.CleanUp(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("cleaning up unused tokens", zap.Error(err))
		}
	}, cleanUpInterval, 0.1, true)
}
