package asked

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const anything = "*"

// subject is what one webhook or policy may be about: resources as its rules name them (pods, pods/status, */scale and
// the like), in namespaces that a selector matches. Nil matches all, though the API stores none.
type subject struct {
	resources  []string
	namespaces *metav1.LabelSelector
}

// everything is the subject of what cannot be read.
var everything = []subject{{resources: []string{anything}}}

// resources are the namespaces that webhooks and policies are about, by the name of the resource, of any group: a rule
// for one group may be about another one's resource of the same name that is the same thing.
type resources map[string][]labels.Selector

func (r resources) add(about []subject) {
	for _, s := range about {
		namespaces := labels.Everything()
		if s.namespaces != nil {
			if parsed, err := metav1.LabelSelectorAsSelector(s.namespaces); err == nil { // else the library tells of it
				namespaces = parsed
			}
		}
		for _, text := range s.resources {
			name, _, _ := strings.Cut(text, "/")
			r[name] = append(r[name], namespaces)
		}
	}
}

// have reports whether a subject includes a resource in any namespace.
func (r resources) have(name string) bool { return len(r[name])+len(r[anything]) > 0 }

// haveIn reports whether a subject includes a resource in a namespace with labels.
func (r resources) haveIn(name string, namespace labels.Set) bool {
	matches := func(s labels.Selector) bool { return s.Matches(namespace) }
	return slices.ContainsFunc(r[name], matches) || slices.ContainsFunc(r[anything], matches)
}

func ofMutatingWebhooks(object any) (about []subject) {
	c, ok := object.(*admissionregistrationv1.MutatingWebhookConfiguration)
	if !ok {
		return everything
	}
	for i := range c.Webhooks {
		about = append(about, subject{ofRules(c.Webhooks[i].Rules), c.Webhooks[i].NamespaceSelector})
	}
	return about
}

func ofValidatingWebhooks(object any) (about []subject) {
	c, ok := object.(*admissionregistrationv1.ValidatingWebhookConfiguration)
	if !ok {
		return everything
	}
	for i := range c.Webhooks {
		about = append(about, subject{ofRules(c.Webhooks[i].Rules), c.Webhooks[i].NamespaceSelector})
	}
	return about
}

func ofMutatingPolicy(object any) []subject {
	p, ok := object.(*admissionregistrationv1.MutatingAdmissionPolicy)
	if !ok {
		return everything
	}
	return ofConstraints(p.Spec.MatchConstraints)
}

func ofValidatingPolicy(object any) []subject {
	p, ok := object.(*admissionregistrationv1.ValidatingAdmissionPolicy)
	if !ok {
		return everything
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
func ofConstraints(m *admissionregistrationv1.MatchResources) []subject {
	if m == nil || len(m.ResourceRules) == 0 {
		return everything
	}
	about := subject{namespaces: m.NamespaceSelector}
	for i := range m.ResourceRules {
		about.resources = append(about.resources, m.ResourceRules[i].Resources...)
	}
	return []subject{about}
}
