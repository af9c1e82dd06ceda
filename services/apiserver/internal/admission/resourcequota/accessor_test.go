package resourcequota

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

func version(v string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q", ResourceVersion: v}}
}

// The accessor knows its own writes, and what others wrote after a conflict, before the informer shows them.
func TestAccessor(t *testing.T) {
	shown := cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	conflict := apierrors.NewConflict(corev1.Resource("resourcequotas"), "q", errors.New("changed"))
	for _, row := range []struct {
		name          string
		shown, stored string
		answer        error // to the write
		want          string
		wantErr       bool
	}{
		{"its own write", "5", "6", nil, "6", false},
		{"a later state", "7", "6", nil, "7", false},
		{"a conflict", "5", "8", conflict, "8", true},
		{"a quota that is gone", "5", "", apierrors.NewNotFound(corev1.Resource("resourcequotas"), "q"), "5", false},
		{"no answer", "5", "6", errors.New("no answer"), "5", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("*", "resourcequotas", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if a.GetVerb() == "update" && row.answer != nil {
					return true, nil, row.answer
				}
				return true, version(row.stored), nil
			})
			if err := shown.Add(version(row.shown)); err != nil {
				t.Fatal(err)
			}
			a := &accessor{client: client, lister: corelisters.NewResourceQuotaLister(shown), latest: newLatest()}
			if err := a.UpdateQuotaStatus(version("5")); (err != nil) != row.wantErr {
				t.Errorf("writing: %v", err)
			}
			for range 2 {
				quotas, err := a.GetQuotas("ns")
				if err != nil || len(quotas) != 1 || quotas[0].ResourceVersion != row.want {
					t.Errorf("%v, %v, want version %s", quotas, err, row.want)
				}
			}
			if others, err := a.GetQuotas("other"); err != nil || len(others) != 0 {
				t.Errorf("another namespace has %v, %v", others, err)
			}
		})
	}
}
