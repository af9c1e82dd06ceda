package authz

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"keelson.dev/kit/follow"
	"keelson.dev/services/apiserver/internal/authz/rbac"
)

// Feed keeps policy up to date from the factory's informers. The returned
// functions report whether each of them has delivered what there was at start.
func Feed(policy *rbac.Policy, factory informers.SharedInformerFactory) ([]cache.InformerSynced, error) {
	feeds := []struct {
		informer cache.SharedIndexInformer
		set      func(metav1.Object)
		remove   func(rbac.Name)
	}{
		{factory.Rbac().V1().ClusterRoles().Informer(), func(obj metav1.Object) {
			role := obj.(*rbacv1.ClusterRole)
			policy.SetRole(nameOf(role), role.Rules)
		}, policy.RemoveRole},
		{factory.Rbac().V1().Roles().Informer(), func(obj metav1.Object) {
			role := obj.(*rbacv1.Role)
			policy.SetRole(nameOf(role), role.Rules)
		}, policy.RemoveRole},
		{factory.Rbac().V1().ClusterRoleBindings().Informer(), func(obj metav1.Object) {
			binding := obj.(*rbacv1.ClusterRoleBinding)
			policy.SetBinding(nameOf(binding), binding.RoleRef, binding.Subjects)
		}, policy.RemoveBinding},
		{factory.Rbac().V1().RoleBindings().Informer(), func(obj metav1.Object) {
			binding := obj.(*rbacv1.RoleBinding)
			policy.SetBinding(nameOf(binding), binding.RoleRef, binding.Subjects)
		}, policy.RemoveBinding},
	}
	var synced []cache.InformerSynced
	for _, f := range feeds {
		registration, err := f.informer.AddEventHandler(follow.Handler(
			f.set, func(obj metav1.Object) { f.remove(nameOf(obj)) }))
		if err != nil {
			return nil, fmt.Errorf("watching roles and bindings: %w", err)
		}
		synced = append(synced, registration.HasSynced)
	}
	return synced, nil
}

func nameOf(obj metav1.Object) rbac.Name {
	return rbac.Name{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}
