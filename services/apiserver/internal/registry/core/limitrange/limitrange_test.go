package limitrange

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func amounts(namesAndAmounts ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(namesAndAmounts); i += 2 {
		list[corev1.ResourceName(namesAndAmounts[i])] = resource.MustParse(namesAndAmounts[i+1])
	}
	return list
}

func ranges(items ...corev1.LimitRangeItem) *corev1.LimitRange {
	return &corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: items}}
}

func TestDefault(t *testing.T) {
	l := ranges(corev1.LimitRangeItem{
		Type: "Container", Max: amounts("cpu", "4", "memory", "4Gi"), Min: amounts("cpu", "1", "storage", "1"),
		Default: amounts("memory", "2Gi"), DefaultRequest: amounts("storage", "2"),
	}, corev1.LimitRangeItem{Type: "Pod", Max: amounts("cpu", "4")})
	Default(l)
	item := l.Spec.Limits[0]
	for name, row := range map[string]struct{ got, want corev1.ResourceList }{
		"limits: the maximum where none is given": {item.Default, amounts("memory", "2Gi", "cpu", "4")},
		"requests: the limit, and the minimum where neither is": {item.DefaultRequest, amounts("storage", "2", "memory",
			"2Gi", "cpu", "4")},
		"minimum is as it was":  {item.Min, amounts("cpu", "1", "storage", "1")},
		"a Pod has no defaults": {l.Spec.Limits[1].Default, nil},
	} {
		if !equality.Semantic.DeepEqual(row.got, row.want) {
			t.Errorf("%s: %v, want %v", name, row.got, row.want)
		}
	}
	least := ranges(corev1.LimitRangeItem{Type: "Container", Min: amounts("cpu", "1")})
	Default(least)
	if got := least.Spec.Limits[0].DefaultRequest; !maps.Equal(got, amounts("cpu", "1")) {
		t.Errorf("without limits the request is %v, want the minimum", got)
	}
}

func TestValidate(t *testing.T) {
	for _, row := range []struct {
		name  string
		items []corev1.LimitRangeItem
		want  []string
	}{
		{"none", nil, nil},
		{"all in order", []corev1.LimitRangeItem{{Type: "Container", Min: amounts("cpu", "1"),
			DefaultRequest: amounts("cpu", "1"), Default: amounts("cpu", "1"), Max: amounts("cpu", "1")}}, nil},
		{"nothing in order", []corev1.LimitRangeItem{{Type: "Container", Min: amounts("cpu", "4"),
			DefaultRequest: amounts("cpu", "3"), Default: amounts("cpu", "2"), Max: amounts("cpu", "1")}}, []string{
			`spec.limits[0].min[cpu]: Invalid value: "4": min value 4 is greater than max value 1`,
			`spec.limits[0].min[cpu]: Invalid value: "4": min value 4 is greater than default request value 3`,
			`spec.limits[0].min[cpu]: Invalid value: "4": min value 4 is greater than default value 2`,
			`spec.limits[0].defaultRequest[cpu]: Invalid value: "3": default request value 3 is greater than max value 1`,
			`spec.limits[0].defaultRequest[cpu]: Invalid value: "3": default request value 3 is greater than default value 2`,
			`spec.limits[0].default[cpu]: Invalid value: "2": default value 2 is greater than max value 1`,
		}},
		{"a type twice", []corev1.LimitRangeItem{{Type: "Pod"}, {Type: "Pod"}},
			[]string{`spec.limits[1].type: Duplicate value: "Pod"`}},
		{"no type", []corev1.LimitRangeItem{{}}, []string{"spec.limits[0].type: Required value"}},
		{"somebody's own type", []corev1.LimitRangeItem{{Type: "example.com/Gadget", Max: amounts("gadgets", "1")}},
			nil},
		{"an unknown type", []corev1.LimitRangeItem{{Type: "Gadget"}}, []string{
			`spec.limits[0].type: Invalid value: "Gadget": must be a standard limit type or fully qualified`}},
		{"a malformed type", []corev1.LimitRangeItem{{Type: "a b"}},
			[]string{`spec.limits[0].type: Invalid value: "a b"`}},
		{"what no container asks for", []corev1.LimitRangeItem{{Type: "Container", Max: amounts("gadgets", "1")}},
			[]string{"spec.limits[0].max[gadgets]: Invalid value"}},
		{"a malformed name", []corev1.LimitRangeItem{{Type: "example.com/Gadget", Max: amounts("a b", "1")}},
			[]string{`spec.limits[0].max[a b]: Invalid value: "a b"`}},
		{"defaults of a Pod", []corev1.LimitRangeItem{{Type: "Pod", Default: amounts("cpu", "1"),
			DefaultRequest: amounts("cpu", "1")}}, []string{
			"spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
			"spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'"}},
		{"a claim's least", []corev1.LimitRangeItem{{Type: "PersistentVolumeClaim", Min: amounts("storage", "1Gi")}},
			nil},
		{"a claim's most", []corev1.LimitRangeItem{{Type: "PersistentVolumeClaim", Max: amounts("storage", "1Gi")}},
			nil},
		{"nothing of a claim", []corev1.LimitRangeItem{{Type: "PersistentVolumeClaim"}}, []string{
			"spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither"}},
		{"least ratio", []corev1.LimitRangeItem{{Type: "Pod", MaxLimitRequestRatio: amounts("cpu", "1")}}, nil},
		{"a lesser ratio", []corev1.LimitRangeItem{{Type: "Pod", MaxLimitRequestRatio: amounts("cpu", "999m")}},
			[]string{
				`spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "999m": ratio 999m is less than 1`}},
		{"widest ratio", []corev1.LimitRangeItem{{Type: "Pod", MaxLimitRequestRatio: amounts("cpu", "4"),
			Min: amounts("cpu", "500m"), Max: amounts("cpu", "2")}}, nil},
		{"a wider ratio", []corev1.LimitRangeItem{{Type: "Pod", MaxLimitRequestRatio: amounts("cpu", "4001m"),
			Min: amounts("cpu", "500m"), Max: amounts("cpu", "2")}}, []string{
			`spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "4001m": ratio 4001m is greater than max/min = 4.0`}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(ranges(row.items...)), row.want...) })
	}
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
