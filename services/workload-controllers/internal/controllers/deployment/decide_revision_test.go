package deployment

import (
	"maps"
	"math"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/workload-controllers/internal/revision"
)

func TestCreation(t *testing.T) {
	d := newDeployment(3, func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{"team": "a", revision.Annotation: "1",
			"kubectl.kubernetes.io/last-applied-configuration": "{}"}
		d.Spec.MinReadySeconds = 5
	})
	plan := run(t, d, newSet(d, 1, 3, 3))
	if plan.Create == nil || plan.Create.Reason != ReasonNewTemplate {
		t.Fatalf("creation %+v", plan.Create)
	}
	set := plan.Create.ReplicaSet
	hash := set.Labels[revision.HashLabel]

	t.Run("DEP-023 DEP-025 the hash is in name, labels, selector and template", func(t *testing.T) {
		want := map[string]string{"app": "web", revision.HashLabel: hash}
		if hash == "" || set.Name != "web-"+hash || !maps.Equal(set.Labels, want) ||
			!maps.Equal(set.Spec.Selector.MatchLabels, want) || !maps.Equal(set.Spec.Template.Labels, want) {
			t.Errorf("name %s, labels %v, selector %v, template %v", set.Name, set.Labels,
				set.Spec.Selector.MatchLabels, set.Spec.Template.Labels)
		}
	})
	t.Run("DEP-026 replicas, strategy, pause and labels do not count", func(t *testing.T) {
		other := newDeployment(7, strategy("1", "1"),
			func(d *appsv1.Deployment) { d.Labels = map[string]string{"x": "y"} })
		if got := run(t, other).Create.ReplicaSet.Name; got != set.Name {
			t.Errorf("name %s, want %s", got, set.Name)
		}
	})
	t.Run("DEP-029 it is the Deployment's", func(t *testing.T) {
		yes := true
		want := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "web-uid",
			Controller: &yes, BlockOwnerDeletion: &yes}}
		if !apiequality.Semantic.DeepEqual(set.OwnerReferences, want) {
			t.Errorf("owner references %+v", set.OwnerReferences)
		}
	})
	t.Run("DEP-030 DEP-082 annotations and minReadySeconds", func(t *testing.T) {
		want := map[string]string{"team": "a", revision.Annotation: "2", revision.DesiredAnnotation: "3",
			revision.MaxAnnotation: "4"}
		if !maps.Equal(set.Annotations, want) || set.Spec.MinReadySeconds != 5 {
			t.Errorf("annotations %v, minReadySeconds %d", set.Annotations, set.Spec.MinReadySeconds)
		}
	})
	t.Run("DEP-028 a collision changes the name", func(t *testing.T) {
		collided := d.DeepCopy()
		collided.Status = afterCollision(Input{Deployment: d})
		if *collided.Status.CollisionCount != 1 || run(t, collided).Create.ReplicaSet.Name == set.Name {
			t.Errorf("after collision %d the name stays %s", *collided.Status.CollisionCount, set.Name)
		}
		collided.Status = afterCollision(Input{Deployment: collided})
		if *collided.Status.CollisionCount != 2 {
			t.Errorf("collisions = %d, want 2", *collided.Status.CollisionCount)
		}
	})
	t.Run("DEP-028 whose the name is", func(t *testing.T) {
		strange, foreign := set.DeepCopy(), set.DeepCopy()
		strange.Spec.Template.Spec.Containers[0].Image = "other"
		foreign.OwnerReferences[0].UID = "someone"
		orphan := set.DeepCopy()
		orphan.OwnerReferences = nil
		if !isSameReplicaSet(set, set.DeepCopy()) || isSameReplicaSet(set, strange) || isSameReplicaSet(set, foreign) ||
			isSameReplicaSet(set, orphan) {
			t.Error("only an own ReplicaSet of the same template is the same")
		}
	})
}

func TestRevisions(t *testing.T) {
	t.Run("DEP-089 DEP-090 a template that comes back gets the highest revision", func(t *testing.T) {
		d := newDeployment(3, atRevision(3))
		plan := run(t, d, newSet(d, 1, 0, 0), newSet(d, 2, 0, 0), newSet(d, 3, 3, 3))
		var to map[string]string
		for _, update := range plan.Updates {
			if update.From.UID == "rs-2" {
				to = update.To.Annotations
			}
		}
		if to[revision.Annotation] != "4" || to[revision.HistoryAnnotation] != "2" || plan.Revision != "4" {
			t.Errorf("annotations %v, Deployment's revision %q; want 4 with history 2", to, plan.Revision)
		}
		if plan.Create != nil {
			t.Errorf("%s is created", plan.Create.ReplicaSet.Name)
		}
	})
	t.Run("DEP-046 without a new template nothing happens", func(t *testing.T) {
		d := newDeployment(3, atRevision(2), withStatus(progressed(reasonAvailable, 0)))
		plan := run(t, d, newSet(d, 1, 0, 0), newSet(d, 2, 3, 3))
		if plan.Create != nil || len(plan.Updates) != 0 || len(plan.Deletes) != 0 || plan.Revision != "" {
			t.Errorf("plan %+v", plan)
		}
	})
	t.Run("DEP-085 DEP-086 annotating reaches the current revision and no other", func(t *testing.T) {
		d := newDeployment(3, atRevision(2))
		d.Annotations["kubernetes.io/change-cause"] = "because"
		plan := run(t, d, newSet(d, 1, 0, 0), newSet(d, 2, 3, 3))
		if len(plan.Updates) != 1 || plan.Updates[0].From.UID != "rs-2" ||
			plan.Updates[0].Reason != ReasonCopied ||
			plan.Updates[0].To.Annotations["kubernetes.io/change-cause"] != "because" {
			t.Errorf("updates %+v", plan.Updates)
		}
	})
	t.Run("DEP-111 paused: no revision, no ReplicaSet", func(t *testing.T) {
		d := newDeployment(3, paused, atRevision(1))
		plan := run(t, d, newSet(d, 1, 3, 3))
		// DEP-118
		if plan.Create != nil || len(plan.Updates) != 0 || plan.Revision != "" || plan.Status.UpdatedReplicas != 0 {
			t.Errorf("plan %+v", plan)
		}
	})
	t.Run("DEP-111 paused at an earlier template: no revision either", func(t *testing.T) {
		d := newDeployment(3, paused, atRevision(3))
		plan := run(t, d, newSet(d, 2, 0, 0), newSet(d, 3, 3, 3))
		if len(plan.Updates) != 0 || plan.Revision != "" {
			t.Errorf("updates %+v, revision %q", plan.Updates, plan.Revision)
		}
	})
}

func TestClaims(t *testing.T) {
	orphan := func(set *appsv1.ReplicaSet) { set.OwnerReferences = nil }
	t.Run("DEP-032 an orphan is adopted and nothing else happens", func(t *testing.T) {
		d := newDeployment(3)
		plan := run(t, d, newSet(d, 2, 3, 3, orphan))
		if len(plan.Claims.Adopt) != 1 || plan.Create != nil || len(plan.Updates) != 0 {
			t.Errorf("plan %+v", plan)
		}
	})
	t.Run("DEP-032 DEP-120 the adopted one is the current one", func(t *testing.T) {
		d := newDeployment(3)
		plan := run(t, d, newSet(d, 2, 3, 3))
		if plan.Create != nil || len(sizes(plan)) != 0 || progressOf(plan.Status).Reason != reasonFound ||
			plan.Revision != "2" {
			t.Errorf("plan %+v", plan)
		}
	})
	t.Run("DEP-027 an orphan without the label is compared by template", func(t *testing.T) {
		d := newDeployment(3)
		bare := newSet(d, 2, 3, 3, func(set *appsv1.ReplicaSet) {
			delete(set.Labels, revision.HashLabel)
			delete(set.Spec.Template.Labels, revision.HashLabel)
			delete(set.Spec.Selector.MatchLabels, revision.HashLabel)
		})
		plan := run(t, d, bare)
		if plan.Create != nil || len(sizes(plan)) != 0 {
			t.Errorf("plan %+v", plan)
		}
		for _, update := range plan.Updates {
			if len(update.To.Spec.Selector.MatchLabels) != 1 {
				t.Errorf("the selector becomes %v", update.To.Spec.Selector)
			}
		}
	})
	t.Run("DEP-079 what the selector does not match stays an orphan", func(t *testing.T) {
		d := newDeployment(3)
		stranger := newSet(d, 2, 3, 3, orphan,
			func(set *appsv1.ReplicaSet) { set.Labels = map[string]string{"app": "other"} })
		plan := run(t, d, stranger)
		if !plan.Claims.Settled() || plan.Create == nil || len(plan.Updates) != 0 {
			t.Errorf("plan %+v", plan)
		}
	})
	t.Run("DEP-144 another Deployment's stays untouched", func(t *testing.T) {
		d, other := newDeployment(3), newDeployment(1, func(d *appsv1.Deployment) {
			d.UID, d.Name = "canary-uid",
				"canary"
		})
		plan := run(t, d, newSet(other, 2, 1, 1))
		if !plan.Claims.Settled() || len(plan.Updates) != 0 || plan.Create == nil {
			t.Errorf("plan %+v", plan)
		}
	})
	t.Run("a Deployment that is being deleted does nothing", func(t *testing.T) {
		d := newDeployment(3, func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{Time: now} })
		plan := run(t, d, newSet(d, 1, 3, 3), newSet(d, 2, 0, 0, orphan))
		if !plan.Claims.Settled() || plan.Create != nil || len(plan.Updates)+len(plan.Deletes) != 0 ||
			!plan.Wake.IsZero() {
			t.Errorf("plan %+v", plan)
		}
	})
}

func TestRollback(t *testing.T) {
	for _, c := range []struct {
		name, to string
		image    string // "" for an unchanged template
		reason   Reason
		event    string
	}{
		{"DEP-091 to a revision", "1", "web:1", ReasonRollback, `Rolled back deployment "web" to revision 1`},
		{"DEP-091 to the one before", "0", "web:2", ReasonRollback, `Rolled back deployment "web" to revision 2`},
		{"to the present one", "3", "", ReasonRollbackMoot,
			`The rollback revision contains the same template as current deployment "web"`},
		{"to none that is left", "7", "", ReasonRollbackStuck, "Unable to find the revision to rollback to."},
		{"to what is no number", "x", "", ReasonRollbackStuck, "Unable to find the revision to rollback to."},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDeployment(3, atRevision(3), func(d *appsv1.Deployment) {
				d.Spec.Template = newTemplate("web:3")
				d.Annotations[appsv1.DeprecatedRollbackTo] = c.to
			})
			plan := run(t, d, newSet(d, 1, 0, 0), newSet(d, 2, 0, 0), newSet(d, 3, 3, 3))
			r := plan.Rollback
			if r == nil || r.Reason != c.reason || r.Event.Message != c.event {
				t.Fatalf("rollback %+v", r)
			}
			if _, ok := r.Annotations[appsv1.DeprecatedRollbackTo]; ok || r.Annotations[revision.Annotation] != "3" {
				t.Errorf("annotations %v", r.Annotations)
			}
			image := ""
			if r.Template != nil {
				image = r.Template.Spec.Containers[0].Image
				if _, ok := r.Template.Labels[revision.HashLabel]; ok {
					t.Error("the template keeps the hash")
				}
			}
			if image != c.image || plan.Create != nil || len(plan.Updates) != 0 {
				t.Errorf("image %q, want %q; updates %+v", image, c.image, plan.Updates)
			}
		})
	}
	t.Run("DEP-094 without a revision before", func(t *testing.T) {
		d := newDeployment(3, func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{
				appsv1.DeprecatedRollbackTo: "0"}
		})
		if r := run(t, d, newSet(d, 2, 3, 3)).Rollback; r == nil || r.Event != noLastRevision() || r.Template != nil {
			t.Errorf("rollback %+v", r)
		}
	})
}

func TestHistoryLimit(t *testing.T) {
	for _, c := range []struct {
		name   string
		limit  int32
		sets   []state
		change func([]*appsv1.ReplicaSet)
		want   []string
	}{
		{"DEP-142 limit 2: the two latest old ones stay", 2, []state{{0, 0, 0}, {1, 0, 0}, {3, 0, 0}, {4, 0, 0},
			{2, 3, 3}}, nil, []string{"rs-0", "rs-1"}},
		{"DEP-143 limit 0: none stays", 0, []state{{0, 0, 0}, {1, 0, 0}, {2, 3, 3}}, nil, []string{"rs-0", "rs-1"}},
		{"within the limit", 2, []state{{0, 0, 0}, {1, 0, 0}, {2, 3, 3}}, nil, nil},
		{"without a limit", math.MaxInt32, []state{{0, 0, 0}, {1, 0, 0}, {2, 3, 3}}, nil, nil},
		{"DEP-143 one that is only now told to have none stays", 0, []state{{0, 1, 0}, {2, 3, 3}},
			func(sets []*appsv1.ReplicaSet) { sets[0].Status.Replicas = 0 }, nil},
		{"DEP-143 one whose size is not answered stays", 0, []state{{0, 0, 0}, {2, 3, 3}},
			func(sets []*appsv1.ReplicaSet) { sets[0].Generation = 2 }, nil},
		{"DEP-143 not before the rollout is complete", 0, []state{{0, 0, 0}, {2, 3, 2}}, nil, nil},
		{"one that is being deleted is not deleted again", 0, []state{{0, 0, 0}, {1, 0, 0}, {2, 3, 3}},
			func(sets []*appsv1.ReplicaSet) { sets[0].DeletionTimestamp = &metav1.Time{Time: now} }, []string{"rs-1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDeployment(3, atRevision(2), func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = &c.limit })
			var sets []*appsv1.ReplicaSet
			for _, s := range c.sets {
				sets = append(sets, newSet(d, s.number, s.size, s.available))
			}
			if c.change != nil {
				c.change(sets)
			}
			slices.Reverse(sets)
			var got []string
			for _, deletion := range run(t, d, sets...).Deletes {
				got = append(got, string(deletion.ReplicaSet.UID))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("deleted %v, want %v", got, c.want)
			}
		})
	}
	t.Run("nothing said: all stay", func(t *testing.T) {
		d := newDeployment(3, atRevision(2), func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = nil })
		if got := run(t, d, newSet(d, 0, 0, 0), newSet(d, 2, 3, 3)).Deletes; len(got) != 0 {
			t.Errorf("deleted %v", got)
		}
	})
}
