package controllers

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"keelson.dev/services/workload-controllers/internal/controllers/cronjob"
	"keelson.dev/services/workload-controllers/internal/controllers/daemonset"
	"keelson.dev/services/workload-controllers/internal/controllers/deployment"
	"keelson.dev/services/workload-controllers/internal/controllers/disruption"
	"keelson.dev/services/workload-controllers/internal/controllers/horizontalpodautoscaler"
	"keelson.dev/services/workload-controllers/internal/controllers/job"
	"keelson.dev/services/workload-controllers/internal/controllers/statefulset"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/rank"
	"keelson.dev/services/workload-controllers/internal/replicas"
)

// wishes holds, for each controller by name, a decision about an object whose numbers are arbitrary, up to the
// largest, while only a handful of its dependents exists.
var wishes = map[string]func(*wild) any{
	"cronjob":                 (*wild).cronJob,
	"daemonset":               (*wild).daemonSet,
	"deployment":              (*wild).deployment,
	"disruption":              (*wild).budget,
	"horizontalpodautoscaler": (*wild).autoscaler,
	"job":                     (*wild).job,
	"replicaset":              (*wild).replicaSet,
	"replicationcontroller":   (*wild).replicaSet, // both are a replicas.Kind
	"statefulset":             (*wild).statefulSet,
}

// countless are the controllers whose objects name no number of objects to create.
var countless = []string{"attachdetach", "csrapproving", "csrcleaner", "csrsigning", "endpoint", "endpointslice",
	"endpointslicemirroring", "ephemeralvolume", "nodeipam", "persistentvolume", "resourceclaim", "resourcequota",
	"rootca", "serviceaccount", "servicecidr", "trustbundle"}

const (
	// passes is large enough that a pass which loops over all the objects wished for does not end within a test's time.
	passes = 1000
	// mostEffects is what one pass may create, each with two claims, and delete, plus some for the handful that exists.
	mostEffects = 500*(1+2) + 500 + 100
	// mostBytes is what one pass may allocate, several times what mostEffects take.
	mostBytes = 64 << 20
)

// DEP-157, SET-050, JOB-032: the cost of a pass depends on what exists and on the bound of a pass, not on the number
// wished for; and no number in a plan has overflowed.
func TestPassesAreBoundedWhateverIsWished(t *testing.T) {
	if got := slices.Sorted(maps.Keys(wishes)); !slices.Equal(slices.Sorted(slices.Values(append(got, countless...))),
		Names()) {
		t.Fatalf("the controllers are %v, those with wishes %v, those without %v", Names(), got, countless)
	}
	for _, name := range slices.Sorted(maps.Keys(wishes)) {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(passes) {
				w := &wild{rand.New(rand.NewPCG(seed, 1))}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				plan := wishes[name](w)
				runtime.ReadMemStats(&after)
				if bytes := after.TotalAlloc - before.TotalAlloc; bytes > mostBytes {
					t.Fatalf("seed %d: the pass allocates %d bytes", seed, bytes)
				}
				check := checked{}
				check.walk(name, reflect.ValueOf(plan))
				if check.effects > mostEffects || check.negative != "" {
					t.Fatalf("seed %d: %d effects; %s", seed, check.effects, check.negative)
				}
			}
		})
	}
}

// checked is the content of a plan.
type checked struct {
	effects  int
	negative string
}

// opaque are the types that effects are about: their content was not decided.
var opaque = []reflect.Type{
	reflect.TypeFor[corev1.Pod](),
	reflect.TypeFor[corev1.PersistentVolumeClaim](),
	reflect.TypeFor[corev1.PodTemplateSpec](),
	reflect.TypeFor[time.Time](),
	reflect.TypeFor[metav1.ObjectMeta](),
	reflect.TypeFor[metav1.Time](),
}

func (c *checked) walk(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			c.walk(path, v.Elem())
		}
	case reflect.Slice:
		c.effects += v.Len()
		for i := range v.Len() {
			c.walk(path, v.Index(i))
		}
	case reflect.Struct:
		if slices.Contains(opaque, v.Type()) {
			return
		}
		for i := range v.NumField() {
			c.walk(path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Int32, reflect.Int64, reflect.Int:
		if v.Int() < -1 { // -1 means none
			c.negative = fmt.Sprint(path, "=", v.Int())
		}
	}
}

var now = time.Unix(1_700_000_000, 0)

// wild makes objects with any numbers.
type wild struct{ *rand.Rand }

func pick[T any](w *wild, from ...T) T { return from[w.IntN(len(from))] }

func (w *wild) number() int32 {
	return pick[int32](w, 0, 1, 2, 501, 100_000, math.MaxInt32/2, math.MaxInt32-1, math.MaxInt32)
}

var (
	numbers  = reflect.TypeFor[*int32]()
	lengths  = reflect.TypeFor[*int64]()
	bounds   = reflect.TypeFor[*intstr.IntOrString]()
	template = reflect.TypeFor[corev1.PodTemplateSpec]()
)

// fill sets every number of a spec, including those of new fields.
func (w *wild) fill(v reflect.Value) {
	switch {
	case v.Type() == numbers:
		v.Set(reflect.ValueOf(new(w.number())))
	case v.Type() == lengths:
		v.Set(reflect.ValueOf(new(pick(w, 0, 1, int64(math.MaxInt32), math.MaxInt64))))
	case v.Type() == bounds:
		of := pick(w, intstr.FromInt32(w.number()), intstr.FromString("25%"), intstr.FromString("100%"))
		v.Set(reflect.ValueOf(&of))
	case v.Type() == template:
	case v.Kind() == reflect.Int32:
		v.SetInt(int64(w.number()))
	case v.Kind() == reflect.Pointer && !v.IsNil():
		w.fill(v.Elem())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				w.fill(v.Field(i))
			}
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			w.fill(v.Index(i))
		}
	}
}

func (w *wild) spec(spec any) { w.fill(reflect.ValueOf(spec).Elem()) }

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Generation: 1,
		CreationTimestamp: metav1.NewTime(now.Add(-1000 * time.Hour))}
}

var (
	selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	pods     = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c:1"}}}}
)

// pod returns a Pod in a random state.
func (w *wild) pod(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: meta(name), Spec: pods.Spec}
	pod.Labels = maps.Clone(selector.MatchLabels)
	pod.Status.Phase = pick(w, corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded,
		corev1.PodFailed)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: pick(w, corev1.ConditionTrue,
		corev1.ConditionFalse), LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
	if w.IntN(4) == 0 {
		pod.DeletionTimestamp = &metav1.Time{Time: now}
	}
	return pod
}

func (w *wild) statefulSet() any {
	set := &appsv1.StatefulSet{ObjectMeta: meta("web"), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: pods,
		PodManagementPolicy: pick(w, appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement),
		UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
			Type:          pick(w, appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType),
			RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{}},
		Ordinals: pick(w, nil, &appsv1.StatefulSetOrdinals{})}}
	for _, name := range []string{"data", "log"}[:w.IntN(3)] {
		set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates,
			corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	w.spec(&set.Spec)
	in := statefulset.Input{Now: now, Set: set, Claims: map[string]*corev1.PersistentVolumeClaim{}}
	if w.IntN(2) == 0 { // otherwise this is the first pass, without a revision
		in.Revisions = append(in.Revisions, statefulset.Decide(in).History.Create)
	}
	for range w.IntN(6) {
		name := fmt.Sprint("web-", uint32(pick(w, 0, w.number()))+uint32(w.number()))
		if !slices.ContainsFunc(in.Pods, func(pod *corev1.Pod) bool { return pod.Name == name }) {
			in.Pods = append(in.Pods, w.pod(name))
		}
		in.Claims["data-"+name] = &corev1.PersistentVolumeClaim{ObjectMeta: meta("data-" + name)}
	}
	return statefulset.Decide(in)
}

func (w *wild) job() any {
	o := &batchv1.Job{ObjectMeta: meta("job"), Spec: batchv1.JobSpec{Selector: selector, Template: pods,
		CompletionMode: pick(w, nil, new(batchv1.IndexedCompletion)),
		SuccessPolicy: pick(w, nil, &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{
			SucceededIndexes: new("0-2147483646"), SucceededCount: new(int32(1))}}})}}
	w.spec(&o.Spec)
	if w.IntN(2) == 0 {
		o.Spec.BackoffLimitPerIndex, o.Spec.MaxFailedIndexes = nil, nil
	}
	o.Status.CompletedIndexes = pick(w, "", "0-100000,100003-2147483645", "7")
	o.Status.FailedIndexes = pick(w, nil, new("8"), new("100001-2147483646"))
	matches, _ := metav1.LabelSelectorAsSelector(selector)
	in := job.Input{Now: now, Job: o, Selector: matches}
	for i := range w.IntN(6) {
		pod := w.pod(fmt.Sprint("job-", i))
		pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
		number := func() string { return fmt.Sprint(w.number()) }
		pod.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: number(),
			batchv1.JobIndexFailureCountAnnotation: number(), batchv1.JobIndexIgnoredFailureCountAnnotation: number()}
		in.Pods = append(in.Pods, pod)
	}
	return job.Decide(in)
}

func (w *wild) cronJob() any {
	o := &batchv1.CronJob{ObjectMeta: meta("cron"), Spec: batchv1.CronJobSpec{
		Schedule: pick(w, "* * * * *", "@every 1s", "0 0 30 2 *")}}
	w.spec(&o.Spec)
	in := cronjob.Input{Now: now, CronJob: o, Location: time.UTC}
	for i := range w.IntN(4) {
		done := &batchv1.Job{ObjectMeta: meta(fmt.Sprint("cron-", i))}
		done.Status.Conditions = []batchv1.JobCondition{{Type: pick(w, batchv1.JobComplete, batchv1.JobFailed),
			Status: corev1.ConditionTrue}}
		in.Jobs = append(in.Jobs, done)
	}
	return cronjob.Decide(in)
}

func (w *wild) daemonSet() any {
	set := &appsv1.DaemonSet{ObjectMeta: meta("agent"), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: pods,
		UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{}}}}
	w.spec(&set.Spec)
	placement := daemonset.NewPlacement()
	in := daemonset.Input{Now: now, DaemonSet: set}
	for i := range 5 {
		node := fmt.Sprint("n", i)
		placement.Put(&corev1.Node{ObjectMeta: meta(node)})
		for range w.IntN(3) {
			pod := w.pod(fmt.Sprint("agent-", len(in.Pods)))
			pod.Spec.NodeName = node
			in.Pods = append(in.Pods, pod)
		}
	}
	in.Places = placement.Of(set)
	return daemonset.Decide(in)
}

func (w *wild) deployment() any {
	d := &appsv1.Deployment{ObjectMeta: meta("web"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: pods,
		Strategy: appsv1.DeploymentStrategy{
			Type: pick(w, appsv1.RollingUpdateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType,
				appsv1.RecreateDeploymentStrategyType), RollingUpdate: &appsv1.RollingUpdateDeployment{}},
		Paused: w.IntN(4) == 0}}
	w.spec(&d.Spec)
	in := deployment.Input{Now: now, Deployment: d, Unfinished: map[types.UID]int{}}
	for i := range w.IntN(4) {
		set := &appsv1.ReplicaSet{ObjectMeta: meta(fmt.Sprint("web-", i)), Spec: appsv1.ReplicaSetSpec{
			Selector: selector, Template: *pods.DeepCopy()}}
		set.Labels = selector.MatchLabels
		set.Spec.Template.Spec.Containers[0].Image = fmt.Sprint("c:", 1+i)
		set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d,
			appsv1.SchemeGroupVersion.WithKind("Deployment"))}
		w.spec(&set.Spec)
		// The existing replicas must not sum up to more than can exist.
		set.Status = appsv1.ReplicaSetStatus{Replicas: min(w.number(), *set.Spec.Replicas, math.MaxInt32/4),
			ObservedGeneration: int64(w.IntN(2))}
		set.Status.ReadyReplicas = set.Status.Replicas
		set.Status.AvailableReplicas = pick(w, 0, set.Status.Replicas)
		set.Annotations = map[string]string{"deployment.kubernetes.io/desired-replicas": fmt.Sprint(w.number()),
			"deployment.kubernetes.io/max-replicas": fmt.Sprint(w.number())}
		in.ReplicaSets = append(in.ReplicaSets, set)
	}
	return deployment.Decide(in)
}

func (w *wild) replicaSet() any {
	set := &appsv1.ReplicaSet{ObjectMeta: meta("web"), Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: pods}}
	w.spec(&set.Spec)
	in := replicas.Input{Now: now, ReplicaSet: set, Counts: podset.Counts{Active: int32(w.IntN(6))}}
	for i := range in.Counts.Active {
		in.Candidates = append(in.Candidates, rank.Of(w.pod(fmt.Sprint("web-", i))))
	}
	return replicas.Decide(in)
}

func (w *wild) budget() any {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: meta("budget")}
	w.spec(&b.Spec)
	if w.IntN(2) == 0 {
		b.Spec.MaxUnavailable = nil
	}
	in := disruption.Input{Now: now, Budget: b, Intended: int(w.number()) + int(w.number())}
	for i := range w.IntN(4) {
		in.Pods = append(in.Pods, w.pod(fmt.Sprint("p", i)))
	}
	return disruption.Decide(in)
}

func (w *wild) autoscaler() any {
	rules := func() *autoscalingv2.HPAScalingRules {
		return &autoscalingv2.HPAScalingRules{Policies: []autoscalingv2.HPAScalingPolicy{
			{Type: autoscalingv2.PodsScalingPolicy}, {Type: autoscalingv2.PercentScalingPolicy}}}
	}
	o := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: meta("hpa"),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			Behavior: pick(
				w,
				nil,
				&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(), ScaleDown: rules()},
			),
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU,
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType}}}},
		},
	}
	w.spec(&o.Spec)
	in := horizontalpodautoscaler.Input{Now: now, Settings: horizontalpodautoscaler.DefaultSettings(), Autoscaler: o,
		Target: horizontalpodautoscaler.Target{Selector: labels.Everything(), Scale: &autoscalingv1.Scale{
			Spec: autoscalingv1.ScaleSpec{Replicas: w.number()}, Status: autoscalingv1.ScaleStatus{Selector: "app=a"}}}}
	reading := horizontalpodautoscaler.Reading{Pods: map[string]horizontalpodautoscaler.Sample{}}
	for i := range w.IntN(4) {
		pod := w.pod(fmt.Sprint("p", i))
		reading.Pods[pod.Name] = horizontalpodautoscaler.Sample{}
		in.Pods = append(in.Pods, pod)
	}
	in.Readings = []horizontalpodautoscaler.Reading{reading}
	return horizontalpodautoscaler.Decide(in)
}
