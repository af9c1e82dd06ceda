package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// aggregate gives each ClusterRole with an aggregation rule the rules of the
// roles that it selects. Roles may be aggregated in several steps, so it repeats
// until nothing changes.
func (b *Bootstrapper) aggregate(ctx context.Context) error {
	client := b.Client.RbacV1().ClusterRoles()
	// The list is long: a stop amid it would have the server log an error. It answers before it stops.
	list, err := client.List(context.WithoutCancel(ctx), metav1.ListOptions{ResourceVersion: ""})
	if err != nil {
		return fmt.Errorf("listing the ClusterRoles: %w", err)
	}
	var errs []error
	for _, changed := range decideAggregation(list.Items) {
		if _, err := client.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
			errs = append(errs, fmt.Errorf("aggregating the ClusterRole %s: %w", changed.Name, err))
		}
	}
	return errors.Join(errs...)
}

// decideAggregation returns the roles whose rules must change, by name.
func decideAggregation(roles []rbacv1.ClusterRole) []*rbacv1.ClusterRole {
	now := make([]*rbacv1.ClusterRole, len(roles))
	for i := range roles {
		now[i] = roles[i].DeepCopy()
	}
	slices.SortFunc(now, func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })
	changed := map[string]*rbacv1.ClusterRole{}
	// A chain of roles is at most as long as there are roles.
	for range now {
		again := false
		for _, r := range now {
			if r.AggregationRule == nil {
				continue
			}
			rules := collected(r, now)
			if apiequality.Semantic.DeepEqual(r.Rules, rules) {
				continue
			}
			r.Rules = rules
			changed[r.Name] = r
			again = true
		}
		if !again {
			break
		}
	}
	var out []*rbacv1.ClusterRole
	for _, r := range now {
		if changed[r.Name] != nil {
			out = append(out, r)
		}
	}
	return out
}

// collected are the rules of the roles that target selects, each once, in the order of the roles' names.
func collected(target *rbacv1.ClusterRole, roles []*rbacv1.ClusterRole) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, r := range roles {
		if r.Name == target.Name || !selected(target.AggregationRule, r.Labels) {
			continue
		}
		for _, rule := range r.Rules {
			if !slices.ContainsFunc(rules,
				func(have rbacv1.PolicyRule) bool { return apiequality.Semantic.DeepEqual(have, rule) }) {
				rules = append(rules, rule)
			}
		}
	}
	return rules
}

func selected(rule *rbacv1.AggregationRule, set labels.Set) bool {
	for i := range rule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&rule.ClusterRoleSelectors[i])
		if err == nil && selector.Matches(set) {
			return true
		}
	}
	return false
}
