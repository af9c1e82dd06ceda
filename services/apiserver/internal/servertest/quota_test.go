package servertest_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/servertest"
)

// DEP-136: of a hundred creates at once, by two servers of one store, no more succeed than the quota has room for, and
// as many as it has; each of the others is refused and none fails by a conflict of the servers.
func TestQuotaIsNeverExceeded(t *testing.T) {
	external := servertest.SharedStore(t)
	servers := []*servertest.Server{servertest.Start(t, external), servertest.Start(t, external)}
	for _, servers := range [][]*servertest.Server{servers[:1], servers} {
		t.Run(fmt.Sprint(len(servers)), func(t *testing.T) {
			namespace := servers[0].Namespace(t, fmt.Sprint("full-", len(servers)))
			const room = 40
			quota := bounded(t, servers, namespace, "count/configmaps", fmt.Sprint(room))
			var made, refused atomic.Int32
			var running sync.WaitGroup
			for i := range 100 {
				running.Go(func() {
					maps := servers[i%len(servers)].Client.CoreV1().ConfigMaps(namespace)
					switch _, err := maps.Create(t.Context(), configMap(fmt.Sprint("c", i), nil),
						metav1.CreateOptions{}); {
					case err == nil:
						made.Add(1)
					case apierrors.IsForbidden(err):
						refused.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			running.Wait()
			if made.Load() != room || refused.Load() != 100-room {
				t.Errorf("%d made and %d refused, want %d and %d", made.Load(), refused.Load(), room, 100-room)
			}
			charged, err := servers[0].Client.CoreV1().ResourceQuotas(namespace).Get(t.Context(), quota,
				metav1.GetOptions{})
			if used := charged.Status.Used["count/configmaps"]; err != nil || used.Value() != room {
				t.Errorf("%s are charged, %v", used.String(), err)
			}
		})
	}
}

// bounded makes a quota of which nothing is used, and returns its name when all servers hold to it.
func bounded(t *testing.T, servers []*servertest.Server, namespace string, what corev1.ResourceName,
	most string) string {
	t.Helper()
	quotas := servers[0].Client.CoreV1().ResourceQuotas(namespace)
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "most"}}
	q.Spec.Hard = corev1.ResourceList{what: resource.MustParse(most), "secrets": resource.MustParse("0")}
	q, err := quotas.Create(t.Context(), q, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	q.Status.Hard = q.Spec.Hard
	q.Status.Used = corev1.ResourceList{what: resource.MustParse("0"), "secrets": resource.MustParse("0")}
	if _, err := quotas.UpdateStatus(t.Context(), q, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, server := range servers {
		servertest.Eventually(t, "the server knows the quota", func(ctx context.Context) string {
			_, err := server.Client.CoreV1().Secrets(namespace).Create(ctx,
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
					GenerateName: "s-"}}, metav1.CreateOptions{DryRun: []string{"All"}})
			if err == nil {
				return "it takes a Secret"
			}
			if strings.Contains(err.Error(), "status unknown for quota") { // it has seen the first write alone
				return err.Error()
			}
			return ""
		})
	}
	return q.Name
}
