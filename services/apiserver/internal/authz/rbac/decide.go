package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"keelson.dev/services/apiserver/internal/authz/answerform"
)

// Request is what someone wants to do: with a resource, or with a Path outside the API.
type Request struct {
	User   string
	Groups []string
	Verb   string

	Namespace, APIGroup, Resource, Subresource, Name string

	// Form is what is known besides of the answer that is wanted, and of a patch.
	Form answerform.Form

	// Path is set for requests that are not about a resource.
	Path string
}

// RequestOf is what an authorizer is asked.
func RequestOf(r authorizer.Attributes) Request {
	who := r.GetUser()
	request := Request{User: who.GetName(), Groups: who.GetGroups(), Verb: r.GetVerb()}
	if !r.IsResourceRequest() {
		request.Path = r.GetPath()
		return request
	}
	request.Namespace, request.APIGroup = r.GetNamespace(), r.GetAPIGroup()
	request.Resource, request.Subresource, request.Name = r.GetResource(), r.GetSubresource(), r.GetName()
	return request
}

// Decide returns the role that allows the request.
func (p *Policy) Decide(r Request) (role Name, allowed bool) {
	p.visit(r.User, r.Groups, r.Namespace, func(name Name, rules []rbacv1.PolicyRule) bool {
		confined := name.Namespace == "" && slices.Contains(p.confined, name.Name)
		if confined && r.allowedByConfined(rules) || !confined && r.AllowedBy(rules) {
			role, allowed = name, true
		}
		return !allowed
	})
	return role, allowed
}

// AllowedBy reports whether one of the rules allows the request.
func (r *Request) AllowedBy(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, r.allowedBy)
}

// allowedByConfined reports whether one of the rules of a confined role allows the request. A rule on all resources
// grants to see them, without what is in Secrets, to delete them, and to let them go.
func (r *Request) allowedByConfined(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		ofAll := slices.Contains(rule.APIGroups, rbacv1.APIGroupAll) &&
			slices.Contains(rule.Resources, rbacv1.ResourceAll)
		if ofAll && (r.Subresource != "" || r.IsConfined()) {
			return false
		}
		return r.allowedBy(rule)
	})
}

// IsConfined reports whether confined roles do not allow the request in its form, but may in another one.
func (r *Request) IsConfined() bool { return r.showsSecrets() || r.changes() && !r.Form.Release }

// showsSecrets reports whether the answer to the request holds what is in Secrets.
func (r *Request) showsSecrets() bool {
	return r.APIGroup == "" && r.Resource == "secrets" && r.Subresource == "" && !r.Form.Metadata &&
		slices.Contains([]string{"get", "list", "watch", "patch", "update", "delete", "deletecollection"}, r.Verb)
}

// changes reports whether the request changes the content of an object.
func (r *Request) changes() bool { return r.Verb == "patch" || r.Verb == "update" }

func (r *Request) allowedBy(rule rbacv1.PolicyRule) bool {
	if !contains(rule.Verbs, r.Verb) {
		return false
	}
	if r.Path != "" {
		return slices.ContainsFunc(rule.NonResourceURLs, r.underPath)
	}
	return contains(rule.APIGroups, r.APIGroup) &&
		slices.ContainsFunc(rule.Resources, r.isResource) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.Name))
}

// isResource: "*" is everything, "pods" without subresources, "pods/log" one of
// them, "*/scale" that subresource of everything.
func (r *Request) isResource(allowed string) bool {
	if allowed == rbacv1.ResourceAll {
		return true
	}
	if r.Subresource == "" {
		return allowed == r.Resource
	}
	resource, subresource, _ := strings.Cut(allowed, "/")
	return subresource == r.Subresource && (resource == r.Resource || resource == rbacv1.ResourceAll)
}

func (r *Request) underPath(allowed string) bool {
	if prefix, ok := strings.CutSuffix(allowed, "*"); ok {
		return strings.HasPrefix(r.Path, prefix)
	}
	return allowed == r.Path
}

func contains(set []string, item string) bool {
	for _, s := range set {
		if s == item || s == "*" {
			return true
		}
	}
	return false
}
