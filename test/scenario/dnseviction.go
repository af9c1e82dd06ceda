package scenario

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/test/mesh"
)

// ClusterDNSEviction evicts one of the two DNS Pods while no node has room for another: the budget keeps the
// second one, which continues to answer, until the first is replaced.
func ClusterDNSEviction(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	all := w.traffic().startClients()
	before := dnsPods(w)
	if len(before) != 2 {
		t.Fatalf("the Pods %v answer for names, want two", before)
	}
	asking := func() { w.traffic().awaitLookup(all[0], "A", "kubernetes.default", kubernetesIP(w)) }
	asking()
	w.Kubectl(append([]string{"cordon"}, m.Nodes()...)...)
	defer w.Kubectl(append([]string{"uncordon"}, m.Nodes()...)...)
	if err := evictDNSPod(w, before[0]); err != nil {
		t.Fatalf("evicting the first: %v", err)
	}
	err := evictDNSPod(w, before[1])
	if !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "disruption budget") {
		t.Fatalf("evicting the second while there is no other: %v, want that the budget forbids it", err)
	}
	w.Kubectl("wait", "--namespace=kube-system", "--for=delete", "pod/"+before[0], "--timeout=60s")
	asking()
	w.Kubectl(append([]string{"uncordon"}, m.Nodes()...)...)
	w.Await("the budget to let the second go", func() Answer {
		if err := evictDNSPod(w, before[1]); err != nil {
			return Saw(err.Error())
		}
		return ""
	})
	w.Kubectl("rollout", "status", "deployment/coredns", "--namespace=kube-system", "--timeout=60s")
	w.Await("two new Pods to answer for names", func() Answer {
		now := dnsPods(w)
		if len(now) != 2 || slices.Contains(now, before[0]) || slices.Contains(now, before[1]) {
			return Sawf("%v, before %v", now, before)
		}
		return ""
	})
	asking()
}

// dnsPods names the Pods of cluster DNS that are not on their way out.
func dnsPods(w *World) (names []string) {
	w.Helper()
	list, err := w.Client.CoreV1().Pods(metav1.NamespaceSystem).List(w.Context(),
		metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
	if err != nil {
		w.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

func evictDNSPod(w *World, pod string) error {
	return w.Client.PolicyV1().Evictions(metav1.NamespaceSystem).Evict(w.Context(),
		&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: pod}})
}

// kubernetesIP is the address of the apiserver's own Service.
func kubernetesIP(w *World) string {
	w.Helper()
	s, err := w.Client.CoreV1().Services(corev1.NamespaceDefault).Get(w.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return s.Spec.ClusterIP
}
