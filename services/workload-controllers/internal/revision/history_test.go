package revision

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func set(name, image string, age time.Duration, revision string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{Annotation: revision},
			CreationTimestamp: metav1.NewTime(time.Unix(1_000_000, 0).Add(-age)),
		},
		Spec: appsv1.ReplicaSetSpec{Template: *template(image)},
	}
}

func TestFindTakesTheOldestOfEqualTemplates(t *testing.T) {
	sets := []*appsv1.ReplicaSet{set("young", "web:1", time.Minute, "3"), set("old", "web:1", time.Hour, "1"),
		set("other", "web:2", 2*time.Hour, "2")}
	if found := Find(template("web:1"), sets); found == nil || found.Name != "old" { // DEP-077
		t.Errorf("found %v, want old", found)
	}
	if found := Find(template("web:3"), sets); found != nil {
		t.Errorf("found %s for a template that no ReplicaSet has", found.Name)
	}
}

func TestHighestAndPrevious(t *testing.T) {
	for _, c := range []struct {
		name              string
		revisions         []string
		highest, previous int64
	}{
		{"none", nil, 0, 0},
		{"one", []string{"4"}, 4, 0},
		{"DEP-089 the second highest, wherever it stands", []string{"3", "1", "2"}, 3, 2},
		{"DEP-090 numbers need not follow each other", []string{"1", "3", "4"}, 4, 3},
		{"what is no number counts as none", []string{"", "x", "2"}, 2, 0},
		{"DEP-089 in falling order", []string{"3", "2", "1"}, 3, 2},
		{"equal numbers count once", []string{"2", "2", "1"}, 2, 1},
		{"wherever they stand", []string{"2", "1", "2"}, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sets []*appsv1.ReplicaSet
			for i, revision := range c.revisions {
				sets = append(sets, set(fmt.Sprint(i), "web:1", 0, revision))
			}
			if highest, previous := Highest(sets), Previous(sets); highest != c.highest || previous != c.previous {
				t.Errorf("highest %d, previous %d; want %d, %d", highest, previous, c.highest, c.previous)
			}
		})
	}
}

func TestAnnotations(t *testing.T) {
	const cause = "kubernetes.io/change-cause"
	for _, c := range []struct {
		name                string
		deployment, current map[string]string
		number              int64
		want                map[string]string
	}{
		{
			name: "DEP-030 a new ReplicaSet gets the Deployment's annotations but those about itself",
			deployment: map[string]string{"team": "a", corev1.LastAppliedConfigAnnotation: "{}", Annotation: "7",
				DesiredAnnotation: "9"},
			number: 1, want: map[string]string{"team": "a", Annotation: "1"},
		},
		{
			name:       "DEP-086 annotating later updates the current revision",
			deployment: map[string]string{cause: "image updated"}, current: map[string]string{Annotation: "1",
				cause: "first"},
			number: 1, want: map[string]string{Annotation: "1", cause: "image updated"},
		},
		{
			name:       "what was taken off the Deployment stays on its revision",
			deployment: nil, current: map[string]string{Annotation: "1", "team": "a"},
			number: 1, want: map[string]string{Annotation: "1", "team": "a"},
		},
		{
			name:    "DEP-090 a revision that comes back keeps its former number",
			current: map[string]string{Annotation: "2"}, number: 4,
			want: map[string]string{Annotation: "4", HistoryAnnotation: "2"},
		},
		{
			name:    "DEP-090 and all numbers before",
			current: map[string]string{Annotation: "4", HistoryAnnotation: "2"}, number: 6,
			want: map[string]string{Annotation: "6", HistoryAnnotation: "2,4"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			current, deployment := maps.Clone(c.current), maps.Clone(c.deployment)
			got := Annotations(c.deployment, c.current, c.number)
			if !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if !maps.Equal(current, c.current) || !maps.Equal(deployment, c.deployment) {
				t.Error("the input changed")
			}
			if again := Annotations(c.deployment, got, c.number); !maps.Equal(again, got) {
				t.Errorf("a second time gives %v", again)
			}
		})
	}
}

func TestHistoryIsBounded(t *testing.T) {
	annotations := map[string]string{Annotation: "1"}
	for number := int64(2); number < 1000; number++ {
		annotations = Annotations(nil, annotations, number)
	}
	history := annotations[HistoryAnnotation]
	if len(history) > 2000 || !strings.HasSuffix(history, ",997,998") || strings.HasPrefix(history, ",") {
		t.Errorf("%d bytes, ends with %q", len(history), history[len(history)-20:])
	}
}

// The oldest number gives way to the byte beyond the bound and not before.
func TestTheBoundOfTheHistory(t *testing.T) {
	history := "1" + strings.Repeat(",1000000", 249) // 1993 bytes
	for next, want := range map[string]string{
		"123456":  history + ",123456",                            // 2000 bytes
		"1234567": strings.TrimPrefix(history, "1,") + ",1234567", // 2001 bytes with the oldest
	} {
		got := Annotations(nil, map[string]string{Annotation: next, HistoryAnnotation: history}, 9)[HistoryAnnotation]
		if got != want {
			t.Errorf("%d bytes from %.10q on, want %d bytes from %.10q on", len(got), got, len(want), want)
		}
	}
}

func TestByAge(t *testing.T) {
	old, young, twin := set("b", "web:1", time.Hour, "1"), set("a", "web:1", time.Minute, "1"),
		set("c", "web:1", time.Hour, "1")
	sets := []*appsv1.ReplicaSet{young, twin, old}
	slices.SortFunc(sets, ByAge)
	if sets[0] != old || sets[1] != twin || sets[2] != young {
		t.Errorf("order %s, %s, %s; want the oldest first, names between equals", sets[0].Name, sets[1].Name,
			sets[2].Name)
	}
}

func TestRollbackAnnotations(t *testing.T) {
	deployment := map[string]string{"team": "b", Annotation: "3", corev1.LastAppliedConfigAnnotation: "{}",
		appsv1.DeprecatedRollbackTo: "2"}
	former := map[string]string{"team": "a", Annotation: "2", HistoryAnnotation: "1", DesiredAnnotation: "3"}
	want := map[string]string{"team": "a", Annotation: "3", corev1.LastAppliedConfigAnnotation: "{}"}
	if got := RollbackAnnotations(deployment, former); !maps.Equal(got, want) { // DEP-089, DEP-091
		t.Errorf("got %v, want %v", got, want)
	}
}
