package prioritylevelconfiguration

import (
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}

func of(t *testing.T, name, spec string) *level {
	t.Helper()
	l := &level{}
	if err := yaml.UnmarshalStrict([]byte(spec), &l.Spec); err != nil {
		t.Fatal(err)
	}
	l.Name = name
	Default(l)
	return l
}

// queuing is the spec of a level with queues.
func queuing(numbers string) string {
	return "{type: Limited, limited: {limitResponse: {type: Queue, queuing: " + numbers + "}}}"
}

func TestValidate(t *testing.T) {
	const response = "spec.limited.limitResponse."
	for _, row := range []struct {
		name, spec string
		want       []string
	}{
		{"rejecting", "{type: Limited, limited: {limitResponse: {type: Reject}}}", nil},
		{"queuing by defaults", queuing("{}"), nil},
		{"no shares", "{type: Limited, limited: {nominalConcurrencyShares: 0, limitResponse: {type: Reject}}}", nil},
		{"no type", "{}", []string{"spec.type: Required value"}},
		{"no such type", "{type: Free}", []string{
			`spec.type: Unsupported value: "Free": supported values: "Exempt", "Limited"`}},
		{"another exempt one", "{type: Exempt}", []string{
			`spec.type: Invalid value: "Exempt": must be 'Exempt' if and only if the name is 'exempt'`}},
		{"limited by nothing", "{type: Limited}", []string{"spec.limited: Required value"}},
		{"limited and exempt", "{type: Limited, exempt: {}, limited: {limitResponse: {type: Reject}}}", []string{
			"spec.exempt: Forbidden: only for type 'Exempt'"}},
		{"numbers below", "{type: Limited, limited: {nominalConcurrencyShares: -1, lendablePercent: -1, " +
			"borrowingLimitPercent: -1, limitResponse: {type: Reject}}}", []string{
			"spec.limited.nominalConcurrencyShares: Invalid value: -1: must be greater than or equal to 0",
			"spec.limited.lendablePercent: Invalid value: -1: must be between 0 and 100",
			"spec.limited.borrowingLimitPercent: Invalid value: -1: must be greater than or equal to 0"}},
		{"all lent, more borrowed", "{type: Limited, limited: {lendablePercent: 100, borrowingLimitPercent: 500, " +
			"limitResponse: {type: Reject}}}", nil},
		{"more than all lent", "{type: Limited, limited: {lendablePercent: 101, limitResponse: {type: Reject}}}",
			[]string{"spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100"}},
		{"no response", "{type: Limited, limited: {}}", []string{response + "type: Required value"}},
		{"no such response", "{type: Limited, limited: {limitResponse: {type: Wait}}}", []string{
			response + `type: Unsupported value: "Wait": supported values: "Queue", "Reject"`}},
		{"queues without queues", "{type: Limited, limited: {limitResponse: {type: Queue}}}", []string{
			response + "queuing: Required value: the type is 'Queue'"}},
		{"rejecting with queues", "{type: Limited, limited: {limitResponse: {type: Reject, queuing: {}}}}", []string{
			response + "queuing: Forbidden: only for type 'Queue'"}},
		{"numbers of queues below", queuing("{queues: -1, handSize: -1, queueLengthLimit: -1}"), []string{
			response + "queuing.queueLengthLimit: Invalid value: -1: must be greater than zero",
			response + "queuing.queues: Invalid value: -1: must be greater than zero",
			response + "queuing.handSize: Invalid value: -1: must be greater than zero"}},
		{"the most queues", queuing("{queues: 10000000, handSize: 2}"), nil},
		{"one more", queuing("{queues: 10000001, handSize: 2}"), []string{
			response + "queuing.queues: Invalid value: 10000001: must not be greater than 10000000"}},
		{"the largest hand", queuing("{queues: 8, handSize: 8}"), nil},
		{"one card more", queuing("{queues: 7, handSize: 8}"), []string{
			response + "queuing.handSize: Invalid value: 8: must not be greater than queues, 7"}},
		{"a hand of 60 bits", queuing("{queues: 128, handSize: 8}"), nil},
		{"of 63", queuing("{queues: 128, handSize: 9}"), []string{
			response + "queuing.handSize: Invalid value: 9: to deal so many of 128 queues takes 63 bits"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(of(t, "mine", row.spec)), row.want...) })
	}
}

// Of the mandatory levels nothing may be changed but what the exempt one may have.
func TestMandatory(t *testing.T) {
	for _, row := range []struct {
		name, spec string
		want       []string
	}{
		{"exempt", "{type: Exempt, exempt: {nominalConcurrencyShares: 7, lendablePercent: 100}}", nil},
		{"exempt", "{type: Exempt}", nil},
		{"exempt", "{type: Exempt, exempt: {nominalConcurrencyShares: -1, lendablePercent: 101}}", []string{
			"spec.exempt.nominalConcurrencyShares: Invalid value: -1",
			"spec.exempt.lendablePercent: Invalid value: 101"}},
		{"exempt", "{type: Exempt, limited: {limitResponse: {type: Reject}}}", []string{
			"spec.limited: Forbidden", "spec: Invalid value"}},
		{"exempt", "{type: Limited, limited: {limitResponse: {type: Reject}}}", []string{
			"spec.type: Invalid value", "spec: Invalid value"}},
		{"catch-all", "{type: Limited, limited: {nominalConcurrencyShares: 5, limitResponse: {type: Reject}}}", nil},
		{"catch-all", "{type: Limited, limited: {nominalConcurrencyShares: 6, limitResponse: {type: Reject}}}",
			[]string{"spec: Invalid value"}},
	} {
		t.Run(row.name+" "+row.spec, func(t *testing.T) {
			fieldtest.Check(t, Validate(of(t, row.name, row.spec)), row.want...)
		})
	}
}

// The library's own levels are valid, and no default changes them.
func TestBootstrap(t *testing.T) {
	all := append(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations...)
	for _, l := range all {
		defaulted := l.DeepCopy()
		if Default(defaulted); !equality.Semantic.DeepEqual(l, defaulted) {
			t.Errorf("%s becomes %+v", l.Name, defaulted.Spec)
		}
		fieldtest.Check(t, Validate(defaulted))
	}
}

func TestDefault(t *testing.T) {
	got := of(t, "a", queuing("{}")).Spec.Limited
	want := &flowcontrolv1.LimitedPriorityLevelConfiguration{NominalConcurrencyShares: ptr.To[int32](30),
		LendablePercent: ptr.To[int32](0), LimitResponse: flowcontrolv1.LimitResponse{
			Type:    flowcontrolv1.LimitResponseTypeQueue,
			Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 64, HandSize: 8, QueueLengthLimit: 50}}}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	none := of(t, "a", "{type: Limited, limited: {nominalConcurrencyShares: 0, limitResponse: {type: Reject}}}")
	if *none.Spec.Limited.NominalConcurrencyShares != 0 {
		t.Error("a level without shares is given some")
	}
	exempt := of(t, "exempt", "{type: Exempt, exempt: {}}").Spec.Exempt
	if *exempt.NominalConcurrencyShares != 0 || *exempt.LendablePercent != 0 {
		t.Errorf("%+v", exempt)
	}
}

func TestValidateStatus(t *testing.T) {
	l := &level{Status: flowcontrolv1.PriorityLevelConfigurationStatus{
		Conditions: []flowcontrolv1.PriorityLevelConfigurationCondition{{Type: "A"}, {Type: "B"}, {Type: "A"}, {}}}}
	fieldtest.Check(t, ValidateStatus(l), `status.conditions[2].type: Duplicate value: "A"`,
		"status.conditions[3].type: Required value")
}
