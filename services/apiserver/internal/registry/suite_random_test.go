package registry_test

import (
	"fmt"
	"maps"
	"math/rand" //nolint:depguard // the library's fuzzer takes a source of this package
	"reflect"
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"
)

// random is a random object, valid or not, that the seed makes again.
func (s *subject) random(seed int64) runtime.Object {
	obj := s.New()
	fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), s.codecs).NilChance(.25).NumElements(0, 2).Funcs(
		anyOf(corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer,
			corev1.ServiceTypeExternalName),
		anyOf(corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP),
		anyOf(corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP),
		anyOf(corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever),
		anyOf(corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed),
		anyOf(corev1.SecretTypeOpaque, corev1.SecretTypeTLS, corev1.SecretTypeDockerConfigJson,
			corev1.SecretTypeBasicAuth),
		anyOf(appsv1.RollingUpdateDeploymentStrategyType, appsv1.RecreateDeploymentStrategyType),
		anyOf(appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType),
		anyOf(appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType),
		anyOf(appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement),
		anyOf(appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
			appsv1.DeletePersistentVolumeClaimRetentionPolicyType),
		anyOf(corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock),
		anyOf(corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod),
		anyOf(corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimLost),
		fillRaw,
		fillRules,
		anyOf(metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists),
	).Fill(obj)
	obj.GetObjectKind().SetGroupVersionKind(s.kind)
	return obj
}

// anyOf fills a field with one of the values that mean something, or with any other.
func anyOf[S ~string](values ...S) func(*S, randfill.Continue) {
	return func(s *S, c randfill.Continue) {
		if i := c.Intn(len(values) + 2); i < len(values) {
			*s = values[i]
		} else if i == len(values) {
			*s = S(c.String(8))
		}
	}
}

// fillRaw writes JSON in the order of its keys, which an encoding may otherwise change.
func fillRaw(raw *runtime.RawExtension, c randfill.Continue) {
	raw.Raw = fmt.Appendf(nil, `{"a":%d,"b":[%q]}`, c.Int31(), strconv.Itoa(c.Int()))
}

// fillRules leaves no list of policies empty: such a one is a mistake, unlike none, but only JSON can say it.
func fillRules(rules *autoscalingv2.HPAScalingRules, c randfill.Continue) {
	if c.FillNoCustom(rules); len(rules.Policies) == 0 {
		rules.Policies = nil
	}
}

// defaulted is a random object as it comes out of a request.
func (s *subject) defaulted(seed int64) runtime.Object {
	obj := s.random(seed)
	s.scheme.Default(obj)
	return obj
}

// valid is the example with every field of a random object that leaves it valid.
func (s *subject) valid(t *testing.T, seed int64, name string) map[string]any {
	t.Helper()
	candidate := s.named(t, name)
	if errs := s.validate(t, candidate); errs != "" {
		t.Fatalf("the suite's example of %s is not valid: %s", s.GroupResource, errs)
	}
	leaves := leavesOf(fields(t, s.random(seed)), nil)
	rand.New(rand.NewSource(seed)).Shuffle(len(leaves), func(i, j int) { leaves[i], leaves[j] = leaves[j], leaves[i] })
	for _, l := range leaves {
		if first := l.path[0]; first == "metadata" || first == "status" || first == "kind" || first == "apiVersion" {
			continue
		}
		next := runtime.DeepCopyJSON(candidate)
		if put(next, l.path, l.value) && s.validate(t, next) == "" {
			candidate = next
		}
	}
	return candidate
}

// validate says why an object with the given fields would be refused.
func (s *subject) validate(t *testing.T, content map[string]any) string {
	t.Helper()
	obj := s.object(content)
	if obj == nil {
		return "it does not fit the type"
	}
	s.scheme.Default(obj)
	s.Object.PrepareForCreate(t.Context(), obj)
	if errs := s.Object.Validate(t.Context(), obj); len(errs) > 0 {
		return errs.ToAggregate().Error()
	}
	return ""
}

// leaf is one field of an object; a step of its path is a name or an index.
type leaf struct {
	path  []any
	value any
}

func leavesOf(value any, path []any) []leaf {
	var found []leaf
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			found = append(found, leavesOf(v[name], append(slices.Clone(path), name))...)
		}
	case []any:
		for i := range v {
			found = append(found, leavesOf(v[i], append(slices.Clone(path), i))...)
		}
	default:
		found = append(found, leaf{path, value})
	}
	return found
}

// put sets a field, with the maps on the way to it; it does not lengthen lists.
func put(in any, path []any, value any) bool {
	switch at := in.(type) {
	case map[string]any:
		name, ok := path[0].(string)
		if !ok {
			return false
		}
		if len(path) == 1 {
			at[name] = value
			return true
		}
		if _, index := path[1].(int); at[name] == nil && !index {
			at[name] = map[string]any{}
		}
		return put(at[name], path[1:], value)
	case []any:
		i, ok := path[0].(int)
		if !ok || i >= len(at) {
			return false
		}
		if len(path) == 1 {
			at[i] = value
			return true
		}
		return put(at[i], path[1:], value)
	}
	return false
}

// lost reports the fields that are set before and are something else after.
func lost(before, after any, path string, report func(path string, before, after any)) {
	switch b := before.(type) {
	case map[string]any:
		a, _ := after.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(b)) {
			lost(b[name], a[name], under(path, name), report)
		}
	case []any:
		a, _ := after.([]any)
		if len(a) < len(b) {
			report(path, before, after)
			return
		}
		for i := range b {
			lost(b[i], a[i], path, report)
		}
	default:
		if before != nil && !reflect.ValueOf(before).IsZero() && before != after {
			report(path, before, after)
		}
	}
}

// differing reports the fields that are not the same in both.
func differing(a, b any, path string, report func(path, difference string)) {
	say := func(path string, before, after any) { report(path, fmt.Sprintf("%v, then %v", before, after)) }
	lost(a, b, path, say)
	lost(b, a, path, func(path string, after, before any) { say(path, before, after) })
}

func under(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
