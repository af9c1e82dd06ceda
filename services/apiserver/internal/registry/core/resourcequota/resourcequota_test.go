package resourcequota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

type edit = func(*corev1.ResourceQuota)

func quota(hard corev1.ResourceList, edits ...edit) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	for _, edit := range edits {
		edit(q)
	}
	return q
}

func amounts(namesAndAmounts ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(namesAndAmounts); i += 2 {
		list[corev1.ResourceName(namesAndAmounts[i])] = resource.MustParse(namesAndAmounts[i+1])
	}
	return list
}

func in(scopes ...corev1.ResourceQuotaScope) edit {
	return func(q *corev1.ResourceQuota) { q.Spec.Scopes = scopes }
}

func selects(scope corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string) edit {
	return func(q *corev1.ResourceQuota) {
		if q.Spec.ScopeSelector == nil {
			q.Spec.ScopeSelector = &corev1.ScopeSelector{}
		}
		q.Spec.ScopeSelector.MatchExpressions = append(q.Spec.ScopeSelector.MatchExpressions,
			corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: operator, Values: values})
	}
}

func TestValidateAmounts(t *testing.T) {
	known := amounts("cpu", "1", "memory", "1", "ephemeral-storage", "1", "requests.cpu", "1", "requests.memory", "1",
		"requests.ephemeral-storage", "1", "requests.storage", "1", "limits.cpu", "100m", "limits.memory", "1",
		"limits.ephemeral-storage", "1", "hugepages-2Mi", "1", "requests.hugepages-2Mi", "1", "pods", "0",
		"resourcequotas", "1", "services", "1", "replicationcontrollers", "1", "secrets", "1", "configmaps", "1",
		"persistentvolumeclaims", "1", "services.nodeports", "1", "services.loadbalancers", "1",
		"count/deployments.apps", "1", "requests.example.com/gpu", "1", "example.com/gpu", "1",
		"gold.storageclass.storage.k8s.io/requests.storage", "1")
	fieldtest.Check(t, Validate(quota(known)))
	fieldtest.Check(t, Validate(quota(amounts("gadgets", "1", "a b", "1", "cpu", "-1"))),
		`spec.hard[gadgets]: Invalid value: "gadgets": must be a standard resource for quota`,
		`spec.hard[a b]: Invalid value: "a b": name part must consist of`,
		`spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0`)
	fieldtest.Check(t, Validate(quota(amounts("pods", "1500m", "count/jobs.batch", "1m", "services", "2"))),
		`spec.hard[pods]: Invalid value: "1500m": must be an integer`,
		`spec.hard[count/jobs.batch]: Invalid value: "1m": must be an integer`)
}

func TestValidateScopes(t *testing.T) {
	const unfit = "unsupported scope applied to resource"
	pods, cpu, claims := amounts("pods", "1"), amounts("pods", "1", "requests.cpu", "1", "limits.memory", "1"),
		amounts("persistentvolumeclaims", "1", "requests.storage", "1")
	for _, row := range []struct {
		name  string
		quota *corev1.ResourceQuota
		want  []string
	}{
		{"unknown", quota(pods, in("Sometimes")),
			[]string{`spec.scopes: Invalid value: "Sometimes": unsupported scope`}},
		{"best effort", quota(pods, in("BestEffort")), nil},
		{"best effort asks for nothing", quota(cpu, in("BestEffort")),
			[]string{`spec.scopes: Invalid value: "BestEffort": ` + unfit}},
		{"not best effort", quota(cpu, in("NotBestEffort")), nil},
		{"terminating", quota(cpu, in("Terminating")), nil},
		{"not terminating", quota(cpu, in("NotTerminating")), nil},
		{"priority", quota(cpu, in("PriorityClass")), nil},
		{"across namespaces", quota(cpu, in("CrossNamespacePodAffinity")), nil},
		{"claims are of no Pod", quota(claims, in("Terminating")),
			[]string{`spec.scopes: Invalid value: "Terminating": ` + unfit}},
		{"claims by attributes", quota(claims, in("VolumeAttributesClass")), nil},
		{"Pods have no attributes", quota(pods, in("VolumeAttributesClass")),
			[]string{`spec.scopes: Invalid value: "VolumeAttributesClass": ` + unfit}},
		{"both efforts", quota(pods, in("BestEffort", "NotBestEffort")),
			[]string{`spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes`}},
		{"both ends", quota(pods, in("NotTerminating", "Terminating")),
			[]string{`spec.scopes: Invalid value: ["NotTerminating","Terminating"]: conflicting scopes`}},
		{"two that go together", quota(pods, in("Terminating", "BestEffort")), nil},
		{"selected", quota(cpu, selects("PriorityClass", "In", "high")), nil},
		{"selected by nothing", quota(cpu, selects("PriorityClass", "In")), []string{
			"spec.scopeSelector.matchExpressions[0].values: Required value: must be at least one value when"}},
		{"not selected by nothing", quota(cpu, selects("PriorityClass", "NotIn")), []string{
			"spec.scopeSelector.matchExpressions[0].values: Required value"}},
		{"exists", quota(cpu, selects("PriorityClass", "Exists"), selects("Terminating", "Exists")), nil},
		{"does not exist", quota(cpu, selects("PriorityClass", "DoesNotExist")), nil},
		{"exists with values", quota(cpu, selects("PriorityClass", "Exists", "high")), []string{
			`spec.scopeSelector.matchExpressions[0].values: Invalid value: ["high"]: must be no value when`}},
		{"operator", quota(cpu, selects("PriorityClass", "Near", "high")), []string{
			`spec.scopeSelector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator`}},
		{"best effort has no values", quota(pods, selects("BestEffort", "In", "a")), []string{
			`spec.scopeSelector.matchExpressions[0].operator: Invalid value: "In": must be 'Exists' when scope is any of`}},
		{"selected where unfit", quota(cpu, selects("BestEffort", "Exists")), []string{
			`spec.scopeSelector.matchExpressions[0].scopeName: Invalid value: "BestEffort": ` + unfit}},
		{"selected both", quota(pods, selects("BestEffort", "Exists"), selects("NotBestEffort", "Exists")), []string{
			`spec.scopeSelector.matchExpressions: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes`}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(row.quota), row.want...) })
	}
}

func TestValidateUpdate(t *testing.T) {
	pods := amounts("pods", "1")
	old := quota(pods, in("Terminating", "BestEffort"), selects("Terminating", "Exists"))
	fieldtest.Check(t, ValidateUpdate(quota(amounts("pods", "2"), in("BestEffort", "Terminating"),
		selects("Terminating", "Exists")), old))
	fieldtest.Check(t, ValidateUpdate(quota(pods, in("Terminating"), selects("BestEffort", "Exists")), old),
		`spec.scopes: Invalid value: ["Terminating"]: field is immutable`, "spec.scopeSelector: Invalid value: ")
}

func TestValidateStatusUpdate(t *testing.T) {
	q := quota(nil)
	q.Status = corev1.ResourceQuotaStatus{Hard: amounts("pods", "1"), Used: amounts("pods", "2")}
	fieldtest.Check(t, ValidateStatusUpdate(q, q))
	q.Status = corev1.ResourceQuotaStatus{Hard: amounts("pods", "-1"), Used: amounts("gadgets", "2")}
	fieldtest.Check(t, ValidateStatusUpdate(q, q), `status.hard[pods]: Invalid value: "-1"`,
		`status.used[gadgets]: Invalid value: "gadgets"`)
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
