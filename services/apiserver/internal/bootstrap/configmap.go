package bootstrap

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ensureConfigMap gives the ConfigMap of that name in kube-system the content that want makes of what it has, nil where
// there is none.
func (b *Bootstrapper) ensureConfigMap(ctx context.Context, name string,
	want func(have map[string]string) map[string]string) error {
	client := b.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	have, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: want(nil)},
			metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	data := want(have.Data)
	if maps.Equal(have.Data, data) {
		return nil
	}
	changed := have.DeepCopy()
	changed.Data = data
	_, err = client.Update(ctx, changed, metav1.UpdateOptions{})
	return err
}
