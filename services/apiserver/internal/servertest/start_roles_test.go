package servertest_test

import (
	"context"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// TestNobodyIsForbiddenAtTheStart: who asks while a server starts is not told that he may not what a role allows.
func TestNobodyIsForbiddenAtTheStart(t *testing.T) {
	dir := t.TempDir()
	t.Run("before", func(t *testing.T) {
		s := servertest.StartIn(t, dir)
		_, err := s.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "ann"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "ann"}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	servertest.StartIn(t, dir, func(c *inproc.Config) {
		for range 4 {
			client, err := kubernetes.NewForConfig(servertest.ConfigAs(c.Listener.Addr().String(), "ann"))
			if err != nil {
				t.Fatal(err)
			}
			asking.Go(func() {
				for ctx.Err() == nil {
					// A client that tries again would not ask while the roles are read.
					err := client.CoreV1().RESTClient().Get().Resource("configmaps").MaxRetries(0).Do(ctx).Error()
					if apierrors.IsForbidden(err) {
						t.Errorf("while the server starts: %v", err)
						return
					}
				}
			})
		}
	})
	stop()
	asking.Wait()
}
