package bootstrap

import (
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	standard "k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
)

// ownDaemons are the mesh's own daemons that the field's schemas do not know.
var ownDaemons = []string{"system:keelson:podgc", "system:keelson:workload-controllers"}

// flowSchemas are the field's, and those that give Keelson's daemons the levels of the field's.
func flowSchemas() kept[*flowcontrolv1.FlowSchema] {
	return kept[*flowcontrolv1.FlowSchema]{
		mandatory: copies(standard.MandatoryFlowSchemas),
		suggested: slices.Concat(copies(standard.SuggestedFlowSchemas), []*flowcontrolv1.FlowSchema{
			ownSchema("keelson-leader-election", standard.SuggestedFlowSchemaSystemLeaderElection,
				flowcontrolv1.PolicyRulesWithSubjects{ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: verbs("get", "create", "update"), APIGroups: []string{coordinationv1.GroupName},
					Resources: []string{"leases"}, Namespaces: []string{flowcontrolv1.NamespaceEvery},
				}}}),
			ownSchema("keelson-daemons", standard.SuggestedFlowSchemaKubeControllerManager,
				flowcontrolv1.PolicyRulesWithSubjects{
					ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
						Verbs: verbs(flowcontrolv1.VerbAll), APIGroups: []string{flowcontrolv1.APIGroupAll},
						Resources: []string{flowcontrolv1.ResourceAll}, ClusterScope: true,
						Namespaces: []string{flowcontrolv1.NamespaceEvery},
					}},
					NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: verbs(flowcontrolv1.VerbAll),
						NonResourceURLs: []string{flowcontrolv1.NonResourceAll}}},
				}),
		}),
		replaced: func(there, by *flowcontrolv1.FlowSchema) *flowcontrolv1.FlowSchema {
			there = there.DeepCopy()
			there.Spec = *by.Spec.DeepCopy()
			return there
		},
	}
}

// priorityLevels are the field's.
func priorityLevels() kept[*flowcontrolv1.PriorityLevelConfiguration] {
	return kept[*flowcontrolv1.PriorityLevelConfiguration]{
		mandatory: copies(standard.MandatoryPriorityLevelConfigurations),
		suggested: copies(standard.SuggestedPriorityLevelConfigurations),
		replaced: func(there, by *flowcontrolv1.PriorityLevelConfiguration) *flowcontrolv1.PriorityLevelConfiguration {
			granted := there.Spec.Exempt
			there = there.DeepCopy()
			there.Spec = *by.Spec.DeepCopy()
			// What the exempt level has of the others is the operator's to say.
			if granted != nil && there.Spec.Exempt != nil {
				there.Spec.Exempt = granted.DeepCopy()
			}
			return there
		},
	}
}

// ownSchema has a rule for Keelson's daemons, and all else from a schema of the field.
func ownSchema(name string, like *flowcontrolv1.FlowSchema, rule flowcontrolv1.PolicyRulesWithSubjects,
) *flowcontrolv1.FlowSchema {
	for _, daemon := range ownDaemons {
		rule.Subjects = append(rule.Subjects, flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser,
			User: &flowcontrolv1.UserSubject{Name: daemon}})
	}
	s := like.DeepCopy()
	s.ObjectMeta = metav1.ObjectMeta{Name: name, Annotations: s.Annotations}
	s.Spec.Rules = []flowcontrolv1.PolicyRulesWithSubjects{rule}
	return s
}

// copies returns copies of the library's objects, which everything in the process reads: a client sets the kind of what
// it writes.
func copies[O interface{ DeepCopy() O }](of []O) []O {
	out := make([]O, len(of))
	for i, o := range of {
		out[i] = o.DeepCopy()
	}
	return out
}
