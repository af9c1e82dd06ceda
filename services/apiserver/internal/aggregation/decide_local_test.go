package aggregation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// storedLocal is an APIService with the label, made so long before.
func storedLocal(name, label string, age time.Duration) *apiregistration.APIService {
	version, group, _ := strings.Cut(name, ".")
	at := definedPriority
	if group == "apps" {
		at = priority{17800, 15}
	}
	s := &apiregistration.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1000, 0).Add(-age))},
		Spec: apiregistration.APIServiceSpec{Group: group, Version: version, GroupPriorityMinimum: at.group,
			VersionPriority: at.version},
	}
	if label != "" {
		s.Labels = map[string]string{automanaged: label, "other": "stays"}
	}
	return s
}

func edited(s *apiregistration.APIService) *apiregistration.APIService {
	s.Spec.Service = &apiregistration.ServiceReference{Namespace: "a", Name: "b"}
	return s
}

func namesOf(services []*apiregistration.APIService) string {
	var names []string
	for _, s := range services {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// The apiserver serves apps/v1 itself, and a definition has a.io/v1.
func TestDecideLocals(t *testing.T) {
	const own, defined, gone = "v1.apps", "v1.a.io", "v1.gone.io"
	right := []*apiregistration.APIService{storedLocal(own, ofBuiltIn, time.Hour), storedLocal(defined, ofDefined, 0)}
	with := func(others ...*apiregistration.APIService) []*apiregistration.APIService {
		return append(slices.Clone(right), others...)
	}
	for _, row := range []struct {
		name                string
		stored              []*apiregistration.APIService
		starting, whole     bool
		known               string
		create, update, del string
	}{
		{"all is well", right, true, true, "", "", "", ""},
		{"an empty store", nil, true, true, "", defined + " " + own, "", ""},
		{"deleted by a user", nil, false, true, "", defined + " " + own, "", ""},
		{"deleted by a user, between", nil, false, false, "", defined, "", ""},
		{"edited", []*apiregistration.APIService{edited(storedLocal(own, ofBuiltIn, 0)),
			edited(storedLocal(defined, ofDefined, 0))}, false, true, "", "", defined + " " + own, ""},
		{"edited, between", []*apiregistration.APIService{edited(storedLocal(own, ofBuiltIn, 0)),
			edited(storedLocal(defined, ofDefined, 0))}, false, false, "", "", defined, ""},
		{"labelled otherwise", []*apiregistration.APIService{storedLocal(own, ofDefined, 0), right[1]}, false, true, "",
			"", own, ""},
		{"a user's own", []*apiregistration.APIService{edited(storedLocal(own, "", 0)),
			edited(storedLocal(defined, "", 0))}, true, true, "", "", "", ""},
		{"labelled by nobody's value", []*apiregistration.APIService{edited(storedLocal(own, "false", 0)), right[1]},
			true, true, "", "", "", ""},
		{"a user's for a server", with(edited(storedLocal(gone, "", time.Hour))), true, true, gone, "", "", ""},
		{"no longer defined", with(storedLocal(gone, ofDefined, 0)), false, false, gone, "", "", gone},
		{"not yet known to be defined", with(storedLocal(gone, ofDefined, settled-1)), true, true, "", "", "", ""},
		{"never known to be defined", with(storedLocal(gone, ofDefined, settled)), false, false, "", "", "", gone},
		{"no longer served, at the start", with(storedLocal(gone, ofBuiltIn, 0)), true, true, "", "", "", gone},
		{"served by another apiserver", with(storedLocal(gone, ofBuiltIn, time.Hour)), false, true, "", "", "", ""},
	} {
		l := Local{Wanted: wantedLocal(map[string][]string{"apps": {"v1"}, "metrics.k8s.io": {"v1"}},
			map[string][]string{"a.io": {"v1"}}), Stored: row.stored, Known: map[string]bool{row.known: true},
			Starting: row.starting, Whole: row.whole, Now: time.Unix(1000, 0)}
		var before []*apiregistration.APIService
		for _, s := range row.stored {
			before = append(before, s.DeepCopy())
		}
		w := decideLocals(l)
		if again := decideLocals(l); !reflect.DeepEqual(w, again) {
			t.Errorf("%s: asked again, it decides otherwise", row.name)
		}
		if !reflect.DeepEqual(row.stored, before) {
			t.Errorf("%s: what is stored is changed", row.name)
		}
		if namesOf(w.Create) != row.create || namesOf(w.Update) != row.update || namesOf(w.Delete) != row.del {
			t.Errorf("%s: creates %q, updates %q, deletes %q; want %q, %q, %q", row.name, namesOf(w.Create),
				namesOf(w.Update), namesOf(w.Delete), row.create, row.update, row.del)
		}
		for _, s := range w.Update {
			if s.Spec.Service != nil || s.Labels["other"] != "stays" ||
				s.Labels[automanaged] != l.Wanted[s.Name].Labels[automanaged] {
				t.Errorf("%s: %s becomes %+v", row.name, s.Name, s)
			}
		}
	}
}

// A built-in version is not one of a definition, whoever defines a kind of its group.
func TestWantedLocal(t *testing.T) {
	wanted := wantedLocal(map[string][]string{"": {"v1"}, "apps": {"v1"}, "metrics.k8s.io": {"v1beta1"}},
		map[string][]string{"apps": {"v1", "v2"}})
	for name, want := range map[string]string{"v1.": "onstart 18000 1", "v1.apps": "onstart 17800 15",
		"v2.apps": "true 1000 100"} {
		s := wanted[name]
		if s == nil {
			t.Errorf("%s is not wanted", name)
			continue
		}
		got := fmt.Sprint(s.Labels[automanaged], " ", s.Spec.GroupPriorityMinimum, " ", s.Spec.VersionPriority)
		if got != want || s.Spec.Version+"."+s.Spec.Group != name {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if len(wanted) != 3 {
		t.Errorf("%d are wanted, want 3", len(wanted))
	}
}

// The apiserver forgets a definition that it has known a while after no apiserver stores it.
func TestDecideKnown(t *testing.T) {
	l := Local{Wanted: wantedLocal(map[string][]string{"apps": {"v1"}}, map[string][]string{"a.io": {"v1"}}),
		Known: map[string]bool{"v1.gone.io": true, "v1.stored.io": true},
		Stored: []*apiregistration.APIService{
			storedLocal("v1.stored.io", ofDefined, 0), storedLocal("v1.b.io", ofDefined, 0),
		}}
	for whole, want := range map[bool]map[string]bool{
		false: {"v1.a.io": true, "v1.gone.io": true, "v1.stored.io": true},
		true:  {"v1.a.io": true, "v1.stored.io": true},
	} {
		l.Whole = whole
		if got := decideKnown(l); !reflect.DeepEqual(got, want) {
			t.Errorf("of a whole look %t: %v, want %v", whole, got, want)
		}
	}
}
