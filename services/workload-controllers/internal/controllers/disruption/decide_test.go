package disruption

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

func atLeast(bound string) policyv1.PodDisruptionBudgetSpec {
	return policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.Parse(bound))}
}

func atMost(bound string) policyv1.PodDisruptionBudgetSpec {
	return policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.Parse(bound))}
}

func budget(spec policyv1.PodDisruptionBudgetSpec, evicted map[string]time.Duration) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Generation: 3},
		Spec: spec}
	for name, ago := range evicted {
		if b.Status.DisruptedPods == nil {
			b.Status.DisruptedPods = map[string]metav1.Time{}
		}
		b.Status.DisruptedPods[name] = metav1.NewTime(now.Add(-ago))
	}
	return b
}

// pods are made of one letter each: R is ready, u is not, d is ready and on its way out.
func pods(kinds string) []*corev1.Pod {
	var all []*corev1.Pod
	for i, kind := range kinds {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i)}}
		p.Status.Phase = corev1.PodRunning
		if kind != 'u' {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		if kind == 'd' {
			p.DeletionTimestamp = &metav1.Time{Time: now}
		}
		all = append(all, p)
	}
	return all
}

func TestDecide(t *testing.T) {
	for _, row := range []struct {
		name     string
		spec     policyv1.PodDisruptionBudgetSpec
		pods     string
		intended int
		// want are expected, desired, healthy and allowed.
		want [4]int32
	}{
		{"SAF-035 two of three", atLeast("2"), "RRR", 3, [4]int32{3, 2, 3, 1}},
		{"SAF-035 with two ready", atLeast("2"), "RRu", 3, [4]int32{3, 2, 2, 0}},
		{"SAF-035 half of seven", atLeast("50%"), "RRRRRRR", 7, [4]int32{7, 4, 7, 3}},
		{"SAF-035 30 % of seven may be down", atMost("30%"), "RRRRRRR", 7, [4]int32{7, 4, 7, 3}},
		{"SAF-035 no Pods", atLeast("0"), "", 0, [4]int32{0, 0, 0, 0}},
		{"SAF-035 SAF-032 three of five", atMost("1"), "RRR", 5, [4]int32{5, 4, 3, 0}},
		{"SAF-033 four of five", atLeast("4"), "RRRRR", 5, [4]int32{5, 4, 5, 1}},
		{"SAF-055 step 1", atLeast("2"), "RRR", 3, [4]int32{3, 2, 3, 1}},
		{"SAF-059 step 3: one is starting", atLeast("2"), "RRu", 3, [4]int32{3, 2, 2, 0}},
		{"SAF-060 step 4: it is available", atLeast("2"), "RRR", 3, [4]int32{3, 2, 3, 1}},
		{"SAF-036 one that goes is not healthy", atLeast("2"), "RRd", 3, [4]int32{3, 2, 2, 0}},
		{"SAF-037 one that its node lost", atLeast("2"), "RRu", 3, [4]int32{3, 2, 2, 0}},
		{"SAF-034 more may be down than there are", atMost("9"), "R", 3, [4]int32{3, 0, 1, 1}},
		{"SAF-034 all may be down", atMost("100%"), "RR", 2, [4]int32{2, 0, 2, 2}},
		{"SAF-034 none may be down", atMost("0"), "RR", 2, [4]int32{2, 2, 2, 0}},
		{"SAF-034 more healthy than needed, none expected", atMost("1"), "RR", 0, [4]int32{0, 0, 2, 0}},
		{"SAF-034 all of one percent", atLeast("1%"), "R", 1, [4]int32{1, 1, 1, 0}},
		{"no bound expects nothing", policyv1.PodDisruptionBudgetSpec{}, "RR", 2, [4]int32{0, 0, 2, 0}},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := Input{Now: now, Budget: budget(row.spec, nil), Pods: pods(row.pods), Intended: row.intended}
			before := in.Budget.DeepCopy()
			plan := Decide(in)
			s := plan.Status
			if got := [4]int32{s.ExpectedPods, s.DesiredHealthy, s.CurrentHealthy,
				s.DisruptionsAllowed}; got != row.want {
				t.Errorf("expected, desired, healthy, allowed: %v, want %v", got, row.want)
			}
			condition := s.Conditions[0]
			allowed := row.want[3] > 0
			if condition.Type != "DisruptionAllowed" || (condition.Status == metav1.ConditionTrue) != allowed ||
				(condition.Reason == "SufficientPods") != allowed ||
				(condition.Reason == "InsufficientPods") == allowed {
				t.Errorf("SAF-034: condition %+v", condition)
			}
			if s.ObservedGeneration != 3 || len(plan.Events) > 0 || !plan.Wake.Equal(now.Add(time.Minute)) {
				t.Errorf("plan %+v", plan)
			}
			in.Budget.Status = s
			if again := Decide(in); !apiequality.Semantic.DeepEqual(again.Status, s) {
				t.Errorf("a second pass makes %+v of %+v", again.Status, s)
			}
			in.Budget.Status = before.Status
			if !apiequality.Semantic.DeepEqual(in.Budget, before) {
				t.Error("the input was changed")
			}
		})
	}
}

// SAF-036: an evicted Pod counts as gone for two minutes, or until it is.
func TestEvicted(t *testing.T) {
	for _, row := range []struct {
		name, pods       string
		evicted          map[string]time.Duration
		healthy, allowed int32
		stays, notGone   bool
		wake             time.Duration
	}{
		{"at once", "RRR", map[string]time.Duration{"p0": 0}, 2, 0, true, false, time.Minute},
		{"in time", "RRR", map[string]time.Duration{"p0": 2*time.Minute - time.Second}, 2, 0, true, false, time.Second},
		{"too late", "RRR", map[string]time.Duration{"p0": 2 * time.Minute}, 3, 1, false, true, time.Minute},
		{"it goes", "dRR", map[string]time.Duration{"p0": time.Second}, 2, 0, false, false, time.Minute},
		{"it is gone", "RRR", map[string]time.Duration{"other": time.Second}, 3, 1, false, false, time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			plan := Decide(Input{Now: now, Budget: budget(atLeast("2"), row.evicted), Pods: pods(row.pods)})
			s := plan.Status
			if s.CurrentHealthy != row.healthy || s.DisruptionsAllowed != row.allowed ||
				(len(s.DisruptedPods) > 0) != row.stays || plan.Wake.Sub(now) != row.wake {
				t.Errorf("status %+v, wakes in %s", s, plan.Wake.Sub(now))
			}
			if told := len(plan.Events) == 1 && plan.Events[0].Pod.Name == "p0" &&
				plan.Events[0].Reason == "NotDeleted"; told != row.notGone {
				t.Errorf("events %+v", plan.Events)
			}
		})
	}
}

// What a budget needs is not known: it allows nothing, says why, and keeps what was evicted.
func TestUnknown(t *testing.T) {
	b := budget(atMost("1"), map[string]time.Duration{"p0": time.Second})
	b.Status.DisruptionsAllowed = 2
	plan := Decide(Input{Now: now, Budget: b, Pods: pods("RRR"), IntendedError: errors.New("nobody says")})
	s := plan.Status
	if s.DisruptionsAllowed != 0 || s.Conditions[0].Reason != "SyncFailed" ||
		s.Conditions[0].Message != "nobody says" ||
		len(s.DisruptedPods) != 1 || s.ObservedGeneration != 3 {
		t.Errorf("status %+v", s)
	}
	if len(plan.Events) != 1 || plan.Events[0].Pod != nil || !strings.Contains(plan.Events[0].Message, "nobody says") {
		t.Errorf("events %+v", plan.Events)
	}
}

// SAF-032: what is intended is added up, of each controller once.
func TestSum(t *testing.T) {
	web, db := Intent{Replicas: 5, Kind: "Deployment", Name: "web"},
		Intent{Replicas: 2, Kind: "StatefulSet", Name: "web"}
	if got, err := sum([]Intent{web, db, web}); got != 7 || err != nil {
		t.Errorf("%d, %v; want 7", got, err)
	}
	if _, err := sum([]Intent{web, {Kind: "Job", Name: "once", Err: errors.New("nobody says")}}); err == nil ||
		!strings.Contains(err.Error(), "Job once, which controls selected Pods, does not say how many are intended: "+
			"nobody says; set .spec.minAvailable to a number") {
		t.Errorf("of a Job: %v", err)
	}
}

// SAF-032: a controller of any kind intends what its scale says, as long as it is the one that owns the Pods.
func TestByScale(t *testing.T) {
	owner := &metav1.OwnerReference{APIVersion: "example.dev/v1", Kind: "Fleet", Name: "web", UID: "1"}
	scaled := func(uid types.UID) *autoscalingv1.Scale {
		return &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{UID: uid},
			Spec: autoscalingv1.ScaleSpec{Replicas: 4}}
	}
	away := errors.New("away")
	for name, row := range map[string]struct {
		scale *autoscalingv1.Scale
		err   error
		want  *Intent
	}{
		"its own":      {scaled("1"), nil, &Intent{Kind: "Fleet", Name: "web", Replicas: 4}},
		"another's":    {scaled("2"), nil, nil},
		"gone":         {nil, apierrors.NewNotFound(schema.GroupResource{Resource: "fleets"}, "web"), nil},
		"not answered": {nil, away, &Intent{Kind: "Fleet", Name: "web", Err: away}},
	} {
		if got := byScale(owner, row.scale, row.err); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

func TestDependsOnIntended(t *testing.T) {
	for want, specs := range map[bool][]policyv1.PodDisruptionBudgetSpec{
		true:  {atMost("1"), atMost("1%"), atLeast("1%")},
		false: {atLeast("1"), {}},
	} {
		for _, spec := range specs {
			if got := DependsOnIntended(&spec); got != want {
				t.Errorf("%+v: %t", spec, got)
			}
		}
	}
}
