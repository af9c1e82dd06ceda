package bootstraptoken

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"

	"keelson.dev/kit/failpoint"
)

// interval is how often the Keeper looks. Tokens are few, and one that has expired is not believed, deleted or not.
const interval = 10 * time.Second

// Keeper looks after tokens.
type Keeper struct {
	Client kubernetes.Interface
	Now    func() time.Time
	Log    *zap.Logger
}

// Run looks now and then until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if err := k.Look(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("keeping bootstrap tokens", zap.Error(err))
		}
	}, interval, 0.1, true)
}

// Look does once what is due, and goes on after an error.
func (k *Keeper) Look(ctx context.Context) error {
	tokens, err := k.Client.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{ResourceVersion: "0",
		FieldSelector: fields.OneTermEqualSelector("type", string(bootstrapapi.SecretTypeBootstrapToken)).String()})
	if err != nil {
		return fmt.Errorf("listing the bootstrap tokens: %w", err)
	}
	errs := []error{k.sign(ctx, tokens.Items)}
	for _, s := range Expired(tokens.Items, k.Now()) {
		errs = append(errs, k.delete(ctx, s))
	}
	return errors.Join(errs...)
}

func (k *Keeper) delete(ctx context.Context, s *corev1.Secret) error {
	err := failpoint.Around("apiserver/bootstraptoken.delete", func() error {
		return k.Client.CoreV1().Secrets(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion}})
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting the bootstrap token %s: %w", s.Name, err)
	}
	return nil
}

// sign signs cluster-info where there is one: an operator makes it.
func (k *Keeper) sign(ctx context.Context, tokens []corev1.Secret) error {
	client := k.Client.CoreV1().ConfigMaps(metav1.NamespacePublic)
	info, err := client.Get(ctx, bootstrapapi.ConfigMapClusterInfo, metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading cluster-info: %w", err)
	}
	data, err := Signed(info.Data, tokens, k.Now(), jws.ComputeDetachedSignature)
	if err != nil {
		return fmt.Errorf("signing cluster-info: %w", err)
	}
	if maps.Equal(info.Data, data) {
		return nil
	}
	signed := info.DeepCopy()
	signed.Data = data
	err = failpoint.Around("apiserver/bootstraptoken.sign", func() error {
		_, err := client.Update(ctx, signed, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("signing cluster-info: %w", err)
	}
	return nil
}
