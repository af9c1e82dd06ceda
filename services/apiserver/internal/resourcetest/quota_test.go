package resourcetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// amounts makes a list of names and amounts.
func amounts(namesAndAmounts ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(namesAndAmounts); i += 2 {
		list[corev1.ResourceName(namesAndAmounts[i])] = resource.MustParse(namesAndAmounts[i+1])
	}
	return list
}

// newQuota makes a quota of which nothing is used, as its controller says.
func newQuota(t *testing.T, s *servertest.Server, ns, name string, hard corev1.ResourceList,
	scopes ...corev1.ResourceQuotaScope) {
	t.Helper()
	quotas := s.Client.CoreV1().ResourceQuotas(ns)
	q := must[*corev1.ResourceQuota](t, "creating")(quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard, Scopes: scopes},
	}, metav1.CreateOptions{}))
	q.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{}}
	for name := range hard {
		q.Status.Used[name] = resource.MustParse("0")
	}
	must[*corev1.ResourceQuota](t, "counting")(quotas.UpdateStatus(t.Context(), q, metav1.UpdateOptions{}))
}

// isUnknown tells a refusal by a server that has seen a quota, and not yet what its controller says.
func isUnknown(err error) bool {
	return err != nil && strings.Contains(err.Error(), "status unknown for quota")
}

// used is what the server has charged.
func used(t *testing.T, s *servertest.Server, ns, name, what string) string {
	t.Helper()
	q := must[*corev1.ResourceQuota](t, "reading")(s.Client.CoreV1().ResourceQuotas(ns).Get(t.Context(), name,
		metav1.GetOptions{}))
	amount := q.Status.Used[corev1.ResourceName(what)]
	return amount.String()
}

// refused wants the one sentence of a refusal.
func refused(t *testing.T, err error, sentence string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), sentence) {
		t.Errorf("%v, want a refusal that ends in %q", err, sentence)
	}
}

// asking is a Pod with one container "c" that asks for this.
func asking(name string, requests, limits corev1.ResourceList) *corev1.Pod {
	pod := newPod(name)
	pod.Spec.Containers[0].Name = "c"
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: limits}
	return pod
}

// What is made is charged, and what would exceed a quota is refused in the field's words; trying costs nothing.
func testQuotaOfPods(t *testing.T, s *servertest.Server) {
	ctx, ns := t.Context(), s.Namespace(t, "quota-pods")
	pods := s.Client.CoreV1().Pods(ns)
	newQuota(t, s, ns, "object-counts", amounts("pods", "2", "cpu", "3", "count/pods", "9"))
	servertest.Eventually(t, "the quota holds", func(ctx context.Context) string {
		_, err := pods.Create(ctx, asking("silent", nil, nil), metav1.CreateOptions{DryRun: []string{"All"}})
		if !apierrors.IsForbidden(err) || isUnknown(err) {
			return fmt.Sprint("a Pod that does not say what it asks for: ", err)
		}
		refused(t, err, "is forbidden: failed quota: object-counts: must specify cpu for: c")
		return ""
	})
	for range 3 {
		must[*corev1.Pod](t, "trying")(pods.Create(ctx, asking("a", amounts("cpu", "1"), nil),
			metav1.CreateOptions{DryRun: []string{"All"}}))
	}
	if got := used(t, s, ns, "object-counts", "pods"); got != "0" {
		t.Errorf("trying has used %s Pods", got)
	}
	// POD-232: an init container counts by the larger, a sidecar beside the containers.
	always := corev1.ContainerRestartPolicyAlways
	whole := asking("whole", amounts("cpu", "500m"), nil)
	whole.Spec.InitContainers = []corev1.Container{{Name: "sidecar", Image: "a", RestartPolicy: &always,
		Resources: corev1.ResourceRequirements{Requests: amounts("cpu", "200m")}},
		{Name: "init", Image: "a", Resources: corev1.ResourceRequirements{Requests: amounts("cpu", "1800m")}}}
	must[*corev1.Pod](t, "creating")(pods.Create(ctx, whole, metav1.CreateOptions{}))
	if got := used(t, s, ns, "object-counts", "cpu"); got != "2" {
		t.Errorf("POD-232: the Pod has used cpu=%s, want 2", got)
	}
	_, err := pods.Create(ctx, asking("large", amounts("cpu", "1001m"), nil), metav1.CreateOptions{})
	refused(t, err, `pods "large" is forbidden: exceeded quota: object-counts, requested: cpu=1001m, used: cpu=2, `+
		`limited: cpu=3`)
	must[*corev1.Pod](t, "creating")(pods.Create(ctx, asking("b", amounts("cpu", "1"), nil), metav1.CreateOptions{}))
	third := asking("", amounts("cpu", "0"), nil)
	third.GenerateName = "web-4262182780-"
	_, err = pods.Create(ctx, third, metav1.CreateOptions{})
	// DEP-135 DEP-136
	refused(t, err, `pods "web-4262182780-" is forbidden: exceeded quota: object-counts, requested: pods=1, used: `+
		`pods=2, limited: pods=2`)
	if got := used(t, s, ns, "object-counts", "count/pods"); got != "2" {
		t.Errorf("%s Pods are counted", got)
	}
}

// A quota of a scope bounds what is in it and nothing else.
func testQuotaScopes(t *testing.T, s *servertest.Server) {
	ctx, ns := t.Context(), s.Namespace(t, "quota-scopes")
	pods := s.Client.CoreV1().Pods(ns)
	scoped := func(edit func(*corev1.Pod)) *corev1.Pod {
		pod := asking("", amounts("cpu", "1"), nil)
		pod.GenerateName = "p-"
		edit(pod)
		return pod
	}
	for scope, row := range map[corev1.ResourceQuotaScope]struct{ in, out func(*corev1.Pod) }{
		corev1.ResourceQuotaScopeBestEffort: {
			in:  func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} },
			out: func(*corev1.Pod) {}},
		corev1.ResourceQuotaScopeTerminating: {
			in:  func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To(int64(9)) },
			out: func(*corev1.Pod) {}},
		corev1.ResourceQuotaScopePriorityClass: {
			in:  func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" },
			out: func(*corev1.Pod) {}},
		corev1.ResourceQuotaScopeCrossNamespacePodAffinity: {
			in: func(p *corev1.Pod) {
				p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone",
						LabelSelector: &metav1.LabelSelector{}, Namespaces: []string{"other"}}}}}
			},
			out: func(*corev1.Pod) {}},
	} {
		name := strings.ToLower(string(scope))
		newQuota(t, s, ns, name, amounts("pods", "0"), scope)
		servertest.Eventually(t, "the quota holds", func(ctx context.Context) string {
			_, err := pods.Create(ctx, scoped(row.in), metav1.CreateOptions{DryRun: []string{"All"}})
			if err == nil || isUnknown(err) {
				return fmt.Sprintf("a Pod in the scope %s: %v", name, err)
			}
			refused(t, err, "exceeded quota: "+name+", requested: pods=1, used: pods=0, limited: pods=0")
			return ""
		})
		must[*corev1.Pod](t, "creating")(pods.Create(ctx, scoped(row.out), metav1.CreateOptions{}))
	}
}

// Of two Pods that come into a scope at once, whose quota has room for one, one stays where it is. What has come into
// the scope is charged once.
func testQuotaOfMoves(t *testing.T, s *servertest.Server) {
	ctx, ns := t.Context(), s.Namespace(t, "quota-moves")
	pods := s.Client.CoreV1().Pods(ns)
	newQuota(t, s, ns, "terminating", amounts("pods", "4", "cpu", "1"), corev1.ResourceQuotaScopeTerminating)
	newQuota(t, s, ns, "lasting", amounts("pods", "2", "cpu", "2"), corev1.ResourceQuotaScopeNotTerminating)
	deadline := func(ctx context.Context, name, seconds string) error {
		_, err := pods.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"activeDeadlineSeconds":`+seconds+`}}`),
			metav1.PatchOptions{})
		return err
	}
	servertest.Eventually(t, "the quotas hold", func(ctx context.Context) string {
		for _, seconds := range []*int64{ptr.To(int64(60)), nil} {
			large := asking("large", amounts("cpu", "3"), nil)
			large.Spec.ActiveDeadlineSeconds = seconds
			_, err := pods.Create(ctx, large, metav1.CreateOptions{DryRun: []string{"All"}})
			if err == nil || isUnknown(err) {
				return fmt.Sprint("a Pod that is too large: ", err)
			}
		}
		return ""
	})
	names := []string{"a", "b"}
	for _, name := range names {
		servertest.Eventually(t, "the Pod is made", func(ctx context.Context) string {
			_, err := pods.Create(ctx, asking(name, amounts("cpu", "1"), nil), metav1.CreateOptions{})
			if err != nil {
				return err.Error()
			}
			return ""
		})
	}
	errs := make([]error, len(names))
	var running sync.WaitGroup
	for i, name := range names {
		running.Go(func() { errs[i] = deadline(ctx, name, "60") })
	}
	running.Wait()
	moved := 0
	if errs[moved] != nil {
		moved = 1
	}
	if errs[moved] != nil {
		t.Errorf("no Pod has come into the scope: %v", errs)
	}
	refused(t, errs[1-moved], `pods "`+names[1-moved]+`" is forbidden: exceeded quota: terminating, requested: cpu=1, `+
		`used: cpu=1, limited: cpu=1`)
	if err := deadline(ctx, names[moved], "59"); err != nil {
		t.Errorf("a Pod that is in the scope already: %v", err)
	}
	for _, row := range []struct{ quota, of, want string }{
		{"terminating", "pods", "1"}, {"terminating", "cpu", "1"}, {"lasting", "pods", "2"},
	} {
		if got := used(t, s, ns, row.quota, row.of); got != row.want {
			t.Errorf("%s %s are used of the quota %s, want %s", got, row.of, row.quota, row.want)
		}
	}
}

// Objects of any kind are counted, Services by their ports too, also when they change; what is not counted yet is not
// given out.
func testQuotaOfObjects(t *testing.T, s *servertest.Server) {
	ctx, ns := t.Context(), s.Namespace(t, "quota-objects")
	newQuota(t, s, ns, "objects", amounts("count/deployments.apps", "1", "secrets", "0", "count/configmaps", "0",
		"services.nodeports", "1", "requests.storage", "1Gi"))
	deployments, services := s.Client.AppsV1().Deployments(ns), s.Client.CoreV1().Services(ns)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	servertest.Eventually(t, "the quota holds", func(ctx context.Context) string {
		_, err := s.Client.CoreV1().Secrets(ns).Create(ctx, secret, metav1.CreateOptions{DryRun: []string{"All"}})
		if err == nil || isUnknown(err) {
			return fmt.Sprint("a Secret: ", err)
		}
		refused(t, err, "exceeded quota: objects, requested: secrets=1, used: secrets=0, limited: secrets=0")
		return ""
	})
	_, err := s.Client.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: secret.ObjectMeta},
		metav1.CreateOptions{})
	refused(t, err, "requested: count/configmaps=1, used: count/configmaps=0, limited: count/configmaps=0")
	_, err = deployments.Create(ctx, servertest.Deployment("one"), metav1.CreateOptions{})
	if err != nil {
		t.Error(err)
	}
	_, err = deployments.Create(ctx, servertest.Deployment("two"), metav1.CreateOptions{})
	refused(t, err, "requested: count/deployments.apps=1, used: count/deployments.apps=1, limited: "+
		"count/deployments.apps=1")
	service := must[*corev1.Service](t, "creating")(services.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "a", Port: 80}, {Name: "b", Port: 81}}},
	}, metav1.CreateOptions{}))
	service.Spec.Type = corev1.ServiceTypeNodePort
	_, err = services.Update(ctx, service, metav1.UpdateOptions{})
	refused(t, err, "requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1")
	service.Spec.Ports = service.Spec.Ports[:1]
	if _, err = services.Update(ctx, service, metav1.UpdateOptions{}); err != nil ||
		used(t, s, ns, "objects", "services.nodeports") != "1" {
		t.Errorf("one port on every node: %v", err)
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"},
			Resources: corev1.VolumeResourceRequirements{Requests: amounts("storage", "2Gi")}}}
	_, err = s.Client.CoreV1().PersistentVolumeClaims(ns).Create(ctx, claim, metav1.CreateOptions{})
	refused(t, err, "requested: requests.storage=2Gi, used: requests.storage=0, limited: requests.storage=1Gi")
	q := must[*corev1.ResourceQuota](t, "reading")(s.Client.CoreV1().ResourceQuotas(ns).Get(ctx, "objects",
		metav1.GetOptions{}))
	delete(q.Status.Used, "requests.storage")
	must[*corev1.ResourceQuota](t, "forgetting")(s.Client.CoreV1().ResourceQuotas(ns).UpdateStatus(ctx, q,
		metav1.UpdateOptions{}))
	claim.Spec.Resources.Requests = amounts("storage", "1")
	servertest.Eventually(t, "the server has seen it", func(ctx context.Context) string {
		_, err := s.Client.CoreV1().PersistentVolumeClaims(ns).Create(ctx, claim,
			metav1.CreateOptions{DryRun: []string{"All"}})
		if err == nil {
			return "a claim is taken though it is not known how much is used"
		}
		refused(t, err, "status unknown for quota: objects, resources: requests.storage")
		return ""
	})
}

// A runtime class gives Pods its overhead, which quotas count, and its place; a Pod that contradicts it is refused.
func testRuntimeClass(t *testing.T, s *servertest.Server) {
	ctx, ns := t.Context(), s.Namespace(t, "runtime")
	must[*nodev1.RuntimeClass](t, "creating")(s.Client.NodeV1().RuntimeClasses().Create(ctx, &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "safe"}, Handler: "kata",
		Overhead: &nodev1.Overhead{PodFixed: amounts("cpu", "250m")},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"kata": "yes"},
			Tolerations: []corev1.Toleration{{Key: "kata", Operator: corev1.TolerationOpExists}}},
	}, metav1.CreateOptions{}))
	newQuota(t, s, ns, "small", amounts("cpu", "1", "secrets", "0"))
	pods := s.Client.CoreV1().Pods(ns)
	pod := asking("a", amounts("cpu", "500m"), nil)
	pod.Spec.RuntimeClassName = ptr.To("safe")
	servertest.Eventually(t, "the quota holds", func(ctx context.Context) string {
		_, err := s.Client.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}},
			metav1.CreateOptions{DryRun: []string{"All"}})
		if err == nil || isUnknown(err) {
			return fmt.Sprint("a Secret: ", err)
		}
		return ""
	})
	got := must[*corev1.Pod](t, "creating")(pods.Create(ctx, pod, metav1.CreateOptions{}))
	if got.Spec.Overhead.Cpu().String() != "250m" || got.Spec.NodeSelector["kata"] != "yes" ||
		!slices.ContainsFunc(got.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "kata" }) {
		t.Errorf("the Pod became %+v", got.Spec)
	}
	if got := used(t, s, ns, "small", "cpu"); got != "750m" {
		t.Errorf("POD-232: the Pod has used cpu=%s, want 750m", got)
	}
	pod.Name, pod.Spec.Overhead = "b", amounts("cpu", "1m")
	_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	refused(t, err, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
	pod.Spec.RuntimeClassName, pod.Spec.Overhead = ptr.To("gone"), nil
	_, err = pods.Create(ctx, pod, metav1.CreateOptions{})
	refused(t, err, `pod rejected: RuntimeClass "gone" not found`)
}
