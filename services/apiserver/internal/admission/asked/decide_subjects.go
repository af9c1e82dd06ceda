package asked

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

const anything = "*"

// resources are names of resources, of any group: a rule for one group may be about another one's resource of the same
// name that is the same thing.
type resources map[string]bool

// add adds those that the resources of rules name, which are pods, pods/status, */scale and the like.
func (r *resources) add(named []string) {
	for _, text := range named {
		name, _, _ := strings.Cut(text, "/")
		if *r == nil {
			*r = resources{}
		}
		(*r)[name] = true
	}
}

func (r resources) have(name string) bool { return r[name] || r[anything] }

func ofMutatingWebhooks(object any) (named []string) {
	c, ok := object.(*admissionregistrationv1.MutatingWebhookConfiguration)
	if !ok {
		return []string{anything}
	}
	for i := range c.Webhooks {
		named = append(named, ofRules(c.Webhooks[i].Rules)...)
	}
	return named
}

func ofValidatingWebhooks(object any) (named []string) {
	c, ok := object.(*admissionregistrationv1.ValidatingWebhookConfiguration)
	if !ok {
		return []string{anything}
	}
	for i := range c.Webhooks {
		named = append(named, ofRules(c.Webhooks[i].Rules)...)
	}
	return named
}

func ofMutatingPolicy(object any) []string {
	p, ok := object.(*admissionregistrationv1.MutatingAdmissionPolicy)
	if !ok {
		return []string{anything}
	}
	return ofConstraints(p.Spec.MatchConstraints)
}

func ofValidatingPolicy(object any) []string {
	p, ok := object.(*admissionregistrationv1.ValidatingAdmissionPolicy)
	if !ok {
		return []string{anything}
	}
	return ofConstraints(p.Spec.MatchConstraints)
}

func ofRules(rules []admissionregistrationv1.RuleWithOperations) (named []string) {
	for i := range rules {
		named = append(named, rules[i].Resources...)
	}
	return named
}

// ofConstraints takes a policy without rules for one about everything.
func ofConstraints(m *admissionregistrationv1.MatchResources) (named []string) {
	if m == nil || len(m.ResourceRules) == 0 {
		return []string{anything}
	}
	for i := range m.ResourceRules {
		named = append(named, m.ResourceRules[i].Resources...)
	}
	return named
}
