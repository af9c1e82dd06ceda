// Package rbac decides by roles and bindings. It is pure: a Policy holds the
// rules, indexed by subject, and answers from memory.
//
//keelson:decision
package rbac

import (
	"maps"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// Name names a role or a binding; without a namespace it is a cluster-wide one.
type Name struct{ Namespace, Name string }

// subject is a user or a group; a service account is the user of that name.
type subject struct {
	group bool
	name  string
}

// binding is what one binding grants.
type binding struct {
	role     Name
	subjects []subject
}

// Policy is the current set of roles and bindings. The zero value is not
// usable; see NewPolicy. It may be used from several goroutines.
type Policy struct {
	mu       sync.RWMutex
	roles    map[Name][]rbacv1.PolicyRule
	bindings map[Name]binding
	// grants are the bindings by the namespace in which they hold ("" is everywhere) and by subject.
	grants map[string]map[subject]map[string]Name
	// confined are ClusterRoles for who works on objects of every kind and has no use for what is in them.
	confined []string
}

// NewPolicy returns a policy that allows nothing. What rules say of all resources of all groups means less in the
// ClusterRoles that are confined: no subresource, of Secrets the metadata, but not what is in them, and of changes
// those that let an object go.
func NewPolicy(confined ...string) *Policy {
	return &Policy{
		roles:    map[Name][]rbacv1.PolicyRule{},
		bindings: map[Name]binding{},
		grants:   map[string]map[subject]map[string]Name{},
		confined: confined,
	}
}

// SetRole adds or replaces a role. The rules must not be changed afterwards.
func (p *Policy) SetRole(name Name, rules []rbacv1.PolicyRule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roles[name] = rules
}

// RemoveRole takes a role away.
func (p *Policy) RemoveRole(name Name) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.roles, name)
}

// Role returns the rules of a role.
func (p *Policy) Role(name Name) ([]rbacv1.PolicyRule, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	rules, ok := p.roles[name]
	return rules, ok
}

// SetBinding adds or replaces a binding.
func (p *Policy) SetBinding(name Name, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unbindLocked(name)
	b := binding{role: RoleOf(name.Namespace, ref), subjects: resolve(subjects, name.Namespace)}
	p.bindings[name] = b
	bySubject := p.grants[name.Namespace]
	if bySubject == nil {
		bySubject = map[subject]map[string]Name{}
		p.grants[name.Namespace] = bySubject
	}
	for _, s := range b.subjects {
		if bySubject[s] == nil {
			bySubject[s] = map[string]Name{}
		}
		bySubject[s][name.Name] = b.role
	}
}

// RemoveBinding takes a binding away.
func (p *Policy) RemoveBinding(name Name) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unbindLocked(name)
}

func (p *Policy) unbindLocked(name Name) {
	bySubject := p.grants[name.Namespace]
	for _, s := range p.bindings[name].subjects {
		delete(bySubject[s], name.Name)
		if len(bySubject[s]) == 0 {
			delete(bySubject, s)
		}
	}
	if len(bySubject) == 0 {
		delete(p.grants, name.Namespace)
	}
	delete(p.bindings, name)
}

// RoleOf is the role that a binding in namespace refers to.
func RoleOf(namespace string, ref rbacv1.RoleRef) Name {
	if ref.Kind == "Role" {
		return Name{Namespace: namespace, Name: ref.Name}
	}
	return Name{Name: ref.Name}
}

// Rules are all rules that hold for the user in namespace, in the order of the bindings' names.
func (p *Policy) Rules(user string, groups []string, namespace string) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	p.visit(user, groups, namespace, func(_ Name, rules []rbacv1.PolicyRule) bool {
		all = append(all, rules...)
		return true
	})
	return all
}

// visit shows each role granted to the user, until see returns false.
func (p *Policy) visit(user string, groups []string, namespace string,
	see func(role Name, rules []rbacv1.PolicyRule) bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	scopes := []string{""}
	if namespace != "" {
		scopes = append(scopes, namespace)
	}
	for _, scope := range scopes {
		bySubject := p.grants[scope]
		if len(bySubject) == 0 {
			continue
		}
		if !p.visitLocked(bySubject[subject{name: user}], see) {
			return
		}
		for _, group := range groups {
			if !p.visitLocked(bySubject[subject{group: true, name: group}], see) {
				return
			}
		}
	}
}

func (p *Policy) visitLocked(granted map[string]Name, see func(Name, []rbacv1.PolicyRule) bool) bool {
	if len(granted) == 0 {
		return true
	}
	for _, name := range slices.Sorted(maps.Keys(granted)) {
		if !see(granted[name], p.roles[granted[name]]) {
			return false
		}
	}
	return true
}

// resolve turns a binding's subjects into users and groups. A service account
// without a namespace is one of the binding's namespace.
func resolve(subjects []rbacv1.Subject, namespace string) []subject {
	out := make([]subject, 0, len(subjects))
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			out = append(out, subject{name: s.Name})
		case rbacv1.GroupKind:
			out = append(out, subject{group: true, name: s.Name})
		case rbacv1.ServiceAccountKind:
			in := s.Namespace
			if in == "" {
				in = namespace
			}
			if in != "" {
				out = append(out, subject{name: serviceaccount.MakeUsername(in, s.Name)})
			}
		}
	}
	return out
}
