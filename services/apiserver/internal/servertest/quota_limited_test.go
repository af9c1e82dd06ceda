package servertest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

const systemsPods = "limitedResources: [{resource: pods, matchScopes: [{scopeName: PriorityClass, operator: In, " +
	"values: [system-node-critical, system-cluster-critical]}]}]"

// limiting is a configuration of the plugin ResourceQuota.
func limiting(says string) string {
	return "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{name: ResourceQuota, " +
		"configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration, " + says + "}}]\n"
}

// Where the operator says so, Pods of the system's priority classes are made where a quota allows them, and nowhere
// else: a tenant's Pods do not preempt the mesh's.
func TestPrioritiesOfTheSystemAreLimited(t *testing.T) {
	s := servertest.Start(t, func(c *inproc.Config) {
		c.AdmissionControlConfigFile = writeConfig(t, t.TempDir(), "admission.yaml", limiting(systemsPods))
	})
	tenant, system := s.Namespace(t, "tenant"), s.Namespace(t, "system")
	create := func(ctx context.Context, namespace, class string) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"}, Spec: corev1.PodSpec{
			PriorityClassName: class, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		_, err := s.Client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	}
	for _, class := range []string{"system-node-critical", "system-cluster-critical"} {
		if err := create(t.Context(), tenant, class); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), "insufficient quota to match these scopes: [{PriorityClass In [") {
			t.Errorf("a tenant's Pod of %s: %v", class, err)
		}
	}
	if err := create(t.Context(), tenant, ""); err != nil {
		t.Errorf("a tenant's Pod of no class: %v", err)
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "critical"}}
	quota.Spec.Hard = corev1.ResourceList{"pods": resource.MustParse("1")}
	quota.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
		ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn,
		Values: []string{"system-cluster-critical"}}}}
	quota, err := s.Client.CoreV1().ResourceQuotas(system).Create(t.Context(), quota, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard,
		Used: corev1.ResourceList{"pods": resource.MustParse("0")}}
	if _, err := s.Client.CoreV1().ResourceQuotas(system).UpdateStatus(t.Context(), quota,
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "the system's Pod is made", func(ctx context.Context) string {
		if err := create(ctx, system, "system-cluster-critical"); err != nil {
			return fmt.Sprint("a Pod that a quota allows: ", err)
		}
		return ""
	})
	servertest.Eventually(t, "the quota is full", func(ctx context.Context) string {
		err := create(ctx, system, "system-cluster-critical")
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: critical") {
			return fmt.Sprint("more Pods than the quota allows: ", err)
		}
		return ""
	})
}

// What is limited where no quota allows it is not had by a change of what was made without it.
func TestMovesToWhatIsLimited(t *testing.T) {
	const bounded = "limitedResources: [{resource: pods, matchScopes: [{scopeName: Terminating, operator: Exists}]}]"
	s := servertest.Start(t, func(c *inproc.Config) {
		c.AdmissionControlConfigFile = writeConfig(t, t.TempDir(), "admission.yaml", limiting(bounded))
	})
	pods := s.Client.CoreV1().Pods(s.Namespace(t, "tenant"))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := pods.Patch(t.Context(), "p", types.MergePatchType, []byte(`{"spec":{"activeDeadlineSeconds":60}}`),
		metav1.PatchOptions{})
	if !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "insufficient quota to match these scopes: [{Terminating Exists []}]") {
		t.Errorf("a deadline where no quota allows one: %v", err)
	}
}

// What is wrong in the configuration stops the start with one sentence and its path.
func TestWrongLimits(t *testing.T) {
	const at = "--admission-control-config-file: plugins[0].configuration: "
	for name, row := range map[string]struct{ says, want string }{
		"a wrong field": {"limited: []", at + "limited: ResourceQuotaConfiguration has no such field"},
		"no resource": {"limitedResources: [{matchContains: [cpu]}]",
			at + "limitedResources[0].resource: Required value"},
		"an unknown scope": {
			"limitedResources: [{resource: pods, matchScopes: [{scopeName: Class, operator: Exists}]}]",
			at + `limitedResources[0].matchScopes[0].scopeName: Unsupported value: "Class": supported values: "BestEffort"`},
		"no values": {"limitedResources: [{resource: pods, matchScopes: [{scopeName: PriorityClass, operator: In}]}]",
			at + "limitedResources[0].matchScopes[0].values: Required value: must be at least one value"},
		"which of them": {"limitedResources: [{resource: pods}]",
			at + "limitedResources[0]: Required value: matchContains or matchScopes must say which pods are limited"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			config := servertest.NewConfig(t, t.TempDir())
			config.AdmissionControlConfigFile = writeConfig(t, dir, "admission.yaml", limiting(row.says))
			refusesToStart(t, config, row.want)
		})
	}
}
