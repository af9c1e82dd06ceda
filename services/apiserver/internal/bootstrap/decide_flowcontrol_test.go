package bootstrap

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	standard "k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/flowcontrol/flowschema"
)

// An operator's object stays, an object that no user has changed follows, what is mandatory is as it is, and what
// another version left goes.
func TestDecideFlowControl(t *testing.T) {
	schema := func(name string, precedence int32, generation int64, says string) *flowcontrolv1.FlowSchema {
		s := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation}}
		s.Spec.MatchingPrecedence = precedence
		if says != "" {
			s.Annotations = map[string]string{flowcontrolv1.AutoUpdateAnnotationKey: says, "other": "x"}
		}
		return s
	}
	k := flowSchemas()
	k.suggested = []*flowcontrolv1.FlowSchema{schema("s", 5, 0, "true")}
	k.mandatory = []*flowcontrolv1.FlowSchema{schema("m", 7, 0, "true")}
	mandatory := schema("m", 7, 1, "true")
	for _, row := range []struct {
		name  string
		there []*flowcontrolv1.FlowSchema
		want  string // +made, name=precedence of what is updated and what it says, -deleted
	}{
		{"a new mesh", nil, "+s +m"},
		{"all there", []*flowcontrolv1.FlowSchema{schema("s", 5, 1, "true"), mandatory}, ""},
		{"another version's suggestion", []*flowcontrolv1.FlowSchema{schema("s", 4, 3, "true"), mandatory}, "s=5 true"},
		{"taken over", []*flowcontrolv1.FlowSchema{schema("s", 4, 3, "false"), mandatory}, ""},
		{"made before there was an annotation", []*flowcontrolv1.FlowSchema{schema("s", 4, 1, ""), mandatory},
			"s=5 true"},
		{"and changed since", []*flowcontrolv1.FlowSchema{schema("s", 4, 2, ""), mandatory}, "s=4 false"},
		{"an annotation that says nothing", []*flowcontrolv1.FlowSchema{schema("s", 4, 2, "maybe"), mandatory},
			"s=4 false"},
		{"mandatory, changed and taken over",
			[]*flowcontrolv1.FlowSchema{schema("s", 5, 1, "true"), schema("m", 8, 2, "false")}, "m=7 true"},
		{"mandatory without annotation", []*flowcontrolv1.FlowSchema{schema("s", 5, 1, "true"), schema("m", 7, 2, "")},
			"m=7 true"},
		{"an operator's own", []*flowcontrolv1.FlowSchema{schema("s", 5, 1, "true"), mandatory, schema("a", 9, 1, ""),
			schema("b", 9, 1, "false"), schema("c", 9, 1, "maybe")}, ""},
		{"another version's", []*flowcontrolv1.FlowSchema{schema("s", 5, 1, "true"), mandatory,
			schema("old", 9, 1, "true")}, "-old"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var before []*flowcontrolv1.FlowSchema
			for _, o := range row.there {
				before = append(before, o.DeepCopy())
			}
			do, got := k.decide(row.there), []string{}
			for _, o := range do.create {
				got = append(got, "+"+o.Name)
			}
			for _, o := range do.update {
				got = append(got, fmt.Sprintf("%s=%d %s", o.Name, o.Spec.MatchingPrecedence,
					o.Annotations[flowcontrolv1.AutoUpdateAnnotationKey]))
			}
			for _, name := range do.remove {
				got = append(got, "-"+name)
			}
			if got := strings.Join(got, " "); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
			if !equality.Semantic.DeepEqual(before, row.there) {
				t.Error("the input was changed")
			}
		})
	}
}

// What an operator grants to the exempt level stays, all else of it does not.
func TestDecideExemptLevel(t *testing.T) {
	k := priorityLevels()
	var there []*flowcontrolv1.PriorityLevelConfiguration
	for _, l := range append(k.mandatory, k.suggested...) {
		there = append(there, l.DeepCopy())
	}
	exempt := there[1]
	exempt.Spec.Exempt.NominalConcurrencyShares = ptr.To[int32](9)
	if do := k.decide(there); exempt.Name != "exempt" || len(do.create)+len(do.update)+len(do.remove) > 0 {
		t.Errorf("of %s: %+v", exempt.Name, do)
	}
	exempt.Spec.Limited = &flowcontrolv1.LimitedPriorityLevelConfiguration{}
	if do := k.decide(there); len(do.update) != 1 || do.update[0].Spec.Limited != nil ||
		*do.update[0].Spec.Exempt.NominalConcurrencyShares != 9 {
		t.Errorf("%+v", do.update)
	}
	exempt.Spec.Limited, exempt.Spec.Exempt = nil, nil
	if do := k.decide(there); len(do.update) != 1 || do.update[0].Spec.Exempt == nil {
		t.Errorf("%+v", do.update)
	}
}

// All schemas are valid, their levels are there, and the second look writes nothing.
func TestEnsureFlowControl(t *testing.T) {
	client := fake.NewClientset()
	b := New(Config{Client: client})
	if err := b.ensureFlowControl(t.Context()); err != nil {
		t.Fatal(err)
	}
	schemas, err := client.FlowcontrolV1().FlowSchemas().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	daemons := map[string]string{}
	for i := range schemas.Items {
		s := &schemas.Items[i]
		if errs := flowschema.Validate(s); len(errs) > 0 {
			t.Errorf("%s: %v", s.Name, errs)
		}
		level := s.Spec.PriorityLevelConfiguration.Name
		if _, err := client.FlowcontrolV1().PriorityLevelConfigurations().Get(t.Context(), level,
			metav1.GetOptions{}); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		for _, subject := range s.Spec.Rules[0].Subjects {
			if subject.User != nil && strings.HasPrefix(subject.User.Name, "system:keelson:") {
				daemons[subject.User.Name] += fmt.Sprintf("%d %s ", s.Spec.MatchingPrecedence, level)
			}
		}
	}
	for _, daemon := range ownDaemons {
		if want := "800 workload-high 100 leader-election "; daemons[daemon] != want {
			t.Errorf("%s is known to %q, want %q", daemon, daemons[daemon], want)
		}
	}
	client.ClearActions()
	if err := b.ensureFlowControl(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, action := range client.Actions() {
		if action.GetVerb() != "list" {
			t.Errorf("the second look: %s %s", action.GetVerb(), action.GetResource().Resource)
		}
	}
	// What is deleted is made again.
	if err := client.FlowcontrolV1().FlowSchemas().Delete(t.Context(), "exempt", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := b.ensureFlowControl(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.FlowcontrolV1().FlowSchemas().Get(t.Context(), "exempt", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// Nothing that is written is the library's own object, which other goroutines read.
func TestWritesCopiesOfTheLibrary(t *testing.T) {
	theirs := map[any]bool{}
	for _, o := range slices.Concat(standard.MandatoryFlowSchemas, standard.SuggestedFlowSchemas) {
		theirs[o] = true
	}
	for _, o := range slices.Concat(standard.MandatoryPriorityLevelConfigurations,
		standard.SuggestedPriorityLevelConfigurations) {
		theirs[o] = true
	}
	for _, o := range flowSchemas().decide(nil).create {
		if theirs[o] {
			t.Errorf("the FlowSchema %s is not copied", o.Name)
		}
	}
	for _, o := range priorityLevels().decide(nil).create {
		if theirs[o] {
			t.Errorf("the PriorityLevelConfiguration %s is not copied", o.Name)
		}
	}
}
