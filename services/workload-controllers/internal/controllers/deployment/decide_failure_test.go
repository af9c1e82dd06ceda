package deployment

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/conditions"
	"keelson.dev/services/workload-controllers/internal/revision"
)

func complete(set *appsv1.ReplicaSet) { set.Annotations["keelson.dev/complete"] = "true" }

// failing is a Deployment of image web:3 that asks to go back, and whose rollout has exceeded its deadline.
func failing(changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := newDeployment(3, atRevision(3), withStatus(seen(progressed(reasonTimedOut, time.Minute), 4, 1, 3, 3)))
	d.Spec.Template = newTemplate("web:3")
	d.Annotations["keelson.dev/rollback-on-failure"] = "true"
	d.Status.Conditions[0].Message = fmt.Sprintf("ReplicaSet %q has timed out progressing.", newSet(d, 3, 0, 0).Name)
	for _, change := range changes {
		change(d)
	}
	return d
}

func TestFailBack(t *testing.T) {
	name := func(number int) string { return newSet(failing(), number, 0, 0).Name }
	annotated := func(key, value string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Annotations["keelson.dev/"+key] = value }
	}
	for _, row := range []struct {
		name   string
		d      *appsv1.Deployment
		sets   func(d *appsv1.Deployment) []*appsv1.ReplicaSet
		image  string // "" where it does not go back
		failed string
	}{
		{"to the last complete revision", failing(), nil, "web:2", name(3)},
		{"only where it is asked for", failing(annotated("rollback-on-failure", "yes")), nil, "", ""},
		{"not while it is paused", failing(paused), nil, "", ""},
		{"not while the status does not tell",
			failing(withStatus(seen(progressed(reasonUpdated, time.Hour), 4, 1, 3, 3))),
			nil, "", ""},
		{"not for the failure of another template", failing(func(d *appsv1.Deployment) {
			d.Status.Conditions[0].Message = `ReplicaSet "web-other" has timed out progressing.`
		}), nil, "", ""},
		{"not where it went back from it", failing(annotated("rolled-back-from", "x,"+name(3))), nil, "", ""},
		{"not where nothing was complete", failing(), func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
			return []*appsv1.ReplicaSet{newSet(d, 2, 3, 3), newSet(d, 3, 1, 0)}
		}, "", ""},
		{"not from what was complete", failing(), func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
			return []*appsv1.ReplicaSet{newSet(d, 2, 3, 3, complete), newSet(d, 3, 1, 0, complete)}
		}, "", ""},
		{"not when it progresses after all", failing(), func(d *appsv1.Deployment) []*appsv1.ReplicaSet {
			return []*appsv1.ReplicaSet{newSet(d, 2, 3, 3, complete), newSet(d, 3, 1, 1)}
		}, "", ""},
		{"past what it went back from", failing(annotated("rolled-back-from", name(2)+",gone")), nil, "web:1",
			name(3) + "," + name(2)},
	} {
		t.Run(row.name, func(t *testing.T) {
			sets := []*appsv1.ReplicaSet{newSet(row.d, 1, 0, 0, complete), newSet(row.d, 2, 3, 3, complete),
				newSet(row.d, 3, 1, 0)}
			if row.sets != nil {
				sets = row.sets(row.d)
			}
			plan := run(t, row.d, sets...)
			if row.image == "" {
				if plan.Rollback != nil {
					t.Errorf("it goes back: %+v", plan.Rollback)
				}
				return
			}
			back := plan.Rollback
			if back == nil || back.Template == nil || back.Template.Spec.Containers[0].Image != row.image ||
				back.Reason != ReasonFailedBack || len(plan.Updates) > 0 || plan.Create != nil {
				t.Fatalf("%+v", plan)
			}
			number := strings.TrimPrefix(row.image, "web:")
			if want := fmt.Sprintf(
				"ReplicaSet %q of revision 3 has timed out progressing: rolled back to revision %s, the "+
					"last complete one, as the annotation keelson.dev/rollback-on-failure asks", name(3),
				number); back.Event.
				Message != want {
				t.Errorf("event %q, want %q", back.Event.Message, want)
			}
			if got := back.Annotations["keelson.dev/rolled-back-from"]; got != row.failed ||
				back.Annotations["keelson.dev/rollback-on-failure"] != "true" ||
				back.Annotations["keelson.dev/complete"] != "" {
				t.Errorf("annotations %v, want %s failed", back.Annotations, row.failed)
			}
		})
	}
}

// A ReplicaSet is marked when the rollout is complete with it and going back is asked for.
func TestMarkComplete(t *testing.T) {
	asks := func(d *appsv1.Deployment) { d.Annotations[revision.OnFailureAnnotation] = "true" }
	none := func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(0)) }
	for _, row := range []struct {
		name      string
		changes   []func(*appsv1.Deployment)
		available int32
		want      bool
	}{
		{"complete", []func(*appsv1.Deployment){asks}, 3, true}, {"almost complete", []func(*appsv1.Deployment){asks},
			2, false},
		{"not asked for", nil, 3, false}, {"without replicas", []func(*appsv1.Deployment){asks, none}, 0, false},
	} {
		d := newDeployment(3, append([]func(*appsv1.Deployment){atRevision(2)}, row.changes...)...)
		plan := run(t, d, newSet(d, 2, replicasOf(d), row.available))
		marked := slices.ContainsFunc(plan.Updates, func(u Update) bool {
			return u.To.Annotations["keelson.dev/complete"] == "true"
		})
		if marked != row.want {
			t.Errorf("%s: marked %t", row.name, marked)
		}
	}
}

// The condition says why the Deployment runs what it runs.
func TestRolledBackCondition(t *testing.T) {
	d := failing()
	one, two, three := newSet(d, 1, 0, 0, complete), newSet(d, 2, 3, 3, complete), newSet(d, 3, 1, 0)
	d.Annotations = run(t, d, one, two, three).Rollback.Annotations
	for image, want := range map[string]string{
		"web:2": fmt.Sprintf("True ProgressDeadlineExceeded ReplicaSet %q has timed out progressing: rolled back to "+
			"ReplicaSet %q, the last complete one.", three.Name, two.Name),
		"web:3": fmt.Sprintf("False RolledBackBefore ReplicaSet %q was rolled back once; it is not again.", three.Name),
		"web:1": "", "web:4": "",
	} {
		d := d.DeepCopy()
		d.Spec.Template = newTemplate(image)
		got := ""
		if c := conditions.Deployment.Find(run(t, d, one, two, three).Status.Conditions,
			"keelson.dev/RolledBack"); c != nil {
			got = fmt.Sprint(c.Status, " ", c.Reason, " ", c.Message)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}

// Whatever the state: a Deployment goes back only where it is asked for and not paused, to what was complete, and
// never twice from one template.
func TestFailBackBounds(t *testing.T) {
	goesBack := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 7))
		maybe := func(likely int) bool { return r.IntN(10) < likely }
		d := failing(func(d *appsv1.Deployment) {
			d.Spec.Paused = maybe(2)
			d.Annotations["keelson.dev/rollback-on-failure"] = []string{"true", "true", "false", ""}[r.IntN(4)]
			if maybe(2) {
				d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
			}
		})
		var sets []*appsv1.ReplicaSet
		for number := 1; number <= 3; number++ {
			size, available := int32(r.IntN(4)), int32(r.IntN(4))
			if maybe(8) { // as in most rollouts that are stuck
				size, available = []int32{0, 3, 1}[number-1], []int32{0, 3, 0}[number-1]
			}
			set := newSet(d, number, size, min(size, available))
			if maybe(4) && number < 3 {
				complete(set)
			}
			sets = append(sets, set)
		}
		for range 6 {
			plan := run(t, d, sets...)
			failed := sets[slices.IndexFunc(sets, func(s *appsv1.ReplicaSet) bool {
				return revision.SameTemplate(&d.Spec.Template, &s.Spec.Template)
			})]
			if plan.Rollback == nil {
				break
			}
			goesBack++
			target := sets[slices.IndexFunc(sets, func(s *appsv1.ReplicaSet) bool {
				return revision.SameTemplate(plan.Rollback.Template, &s.Spec.Template)
			})]
			before := strings.Split(d.Annotations["keelson.dev/rolled-back-from"], ",")
			if d.Spec.Paused || d.Annotations["keelson.dev/rollback-on-failure"] != "true" || target == failed ||
				target.Annotations["keelson.dev/complete"] == "" || slices.Contains(before, failed.Name) {
				t.Fatalf("seed %d: from %s to %s with %v", seed, failed.Name, target.Name, d.Annotations)
			}
			// It is given the same template once more, and fails again.
			d = d.DeepCopy()
			d.Annotations = maps.Clone(plan.Rollback.Annotations)
		}
	}
	if goesBack < 100 {
		t.Errorf("only %d of the states are such that it goes back", goesBack)
	}
}
