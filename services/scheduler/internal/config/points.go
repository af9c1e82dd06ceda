package config

import (
	"fmt"
	"slices"
	"strings"

	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"keelson.dev/services/scheduler/internal/rules"
)

// point is one extension point of the file.
type point struct {
	name string
	set  schedulerv1.PluginSet
	// filter and score are the parts of a rule that it means, preempts whether it means the preemption.
	filter, score, preempts bool
	// only is the one plugin that it takes; empty where it takes others.
	only string
}

// points returns the extension points, the one that stands for all first: the others win over it.
func points(p *schedulerv1.Plugins) []point {
	return []point{
		{name: "multiPoint", set: p.MultiPoint, filter: true, score: true, preempts: true},
		{name: "preEnqueue", set: p.PreEnqueue},
		{name: "queueSort", set: p.QueueSort, only: "PrioritySort"},
		{name: "preFilter", set: p.PreFilter},
		{name: "filter", set: p.Filter, filter: true},
		{name: "postFilter", set: p.PostFilter, preempts: true, only: preemption},
		{name: "preScore", set: p.PreScore},
		{name: "score", set: p.Score, score: true},
		{name: "reserve", set: p.Reserve},
		{name: "permit", set: p.Permit},
		{name: "preBind", set: p.PreBind},
		{name: "bind", set: p.Bind, only: "DefaultBinder"},
		{name: "postBind", set: p.PostBind},
		{name: "placementGenerate", set: p.PlacementGenerate},
		{name: "placementScore", set: p.PlacementScore},
		{name: "podGroupPostFilter", set: p.PodGroupPostFilter},
	}
}

// idle reports whether there is nothing to be switched at the point.
func (at point) idle() bool { return !at.filter && !at.score && !at.preempts && at.only == "" }

// takes reports whether a plugin can be on at the point.
func (at point) takes(name string, r *rules.Rule) bool {
	switch {
	case at.only != "":
		return name == at.only
	case at.filter && at.score:
		return true
	default:
		return r != nil && (at.filter && r.Filter != nil || at.score && r.Score != nil)
	}
}

func (p *profile) apply(at point) error {
	for i := range at.set.Disabled {
		if err := p.disable(at, i); err != nil {
			return fmt.Errorf("disabled[%d].%w", i, err)
		}
	}
	for i := range at.set.Enabled {
		if err := p.enable(at, i); err != nil {
			return fmt.Errorf("enabled[%d].%w", i, err)
		}
	}
	if at.idle() && len(at.set.Disabled)+len(at.set.Enabled) > 0 {
		p.note(fmt.Sprintf("plugins.%s: a plugin is on wherever it is on at filter or score", at.name))
	}
	return nil
}

func (p *profile) disable(at point, i int) error {
	name := at.set.Disabled[i].Name
	if reason, ok := absent[name]; ok {
		p.note(fmt.Sprintf("plugins.%s.disabled[%d]: there is no plugin %s here, %s", at.name, i, name, reason))
		return nil
	}
	again := slices.ContainsFunc(at.set.Enabled, func(on schedulerv1.Plugin) bool { return on.Name == name })
	switch {
	case slices.Contains(fixed, name):
		if !again {
			return fmt.Errorf("name: %s cannot be disabled", name)
		}
	case name == preemption:
		p.preempts = p.preempts && !at.preempts
	case name == "*":
		p.preempts = p.preempts && !at.preempts
		for _, r := range p.rules {
			p.toggle(r.Name, at, false)
		}
	case !p.known(name):
		return fmt.Errorf("name: %w", p.unknown(name))
	default:
		p.toggle(name, at, false)
	}
	return nil
}

func (p *profile) enable(at point, i int) error {
	plugin := &at.set.Enabled[i]
	if slices.ContainsFunc(at.set.Enabled[:i], func(o schedulerv1.Plugin) bool { return o.Name == plugin.Name }) {
		return fmt.Errorf("name: %q stands twice", plugin.Name)
	}
	if reason, ok := absent[plugin.Name]; ok {
		p.note(fmt.Sprintf("plugins.%s.enabled[%d]: there is no plugin %s here, %s", at.name, i, plugin.Name, reason))
		return nil
	}
	r := p.rule(plugin.Name)
	switch {
	case !p.known(plugin.Name):
		return fmt.Errorf("name: %w", p.unknown(plugin.Name))
	case at.idle():
		return nil
	case !at.takes(plugin.Name, r):
		return fmt.Errorf("name: %s has no part at %s, only %s", plugin.Name, at.name, strings.Join(p.takers(at), ", "))
	case plugin.Name == preemption:
		p.preempts = p.preempts || at.preempts
	case r != nil:
		p.toggle(plugin.Name, at, true)
		return weigh(r, at, plugin.Weight)
	}
	return nil
}

// takers are the plugins that can be on at the point.
func (p *profile) takers(at point) (names []string) {
	if at.only != "" {
		return []string{at.only}
	}
	for i := range p.rules {
		if at.takes(p.rules[i].Name, &p.rules[i]) {
			names = append(names, p.rules[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

func (p *profile) toggle(name string, at point, on bool) {
	if at.filter {
		p.filter[name] = on
	}
	if at.score {
		p.score[name] = on
	}
}

// weigh gives the rule the weight that stands at the point, if any does.
func weigh(r *rules.Rule, at point, weight *int32) error {
	if !at.score || weight == nil || *weight == 0 {
		return nil
	}
	if *weight < 0 || *weight > maxPluginWeight {
		return fmt.Errorf("weight: %d, it must be from 1 to %d", *weight, maxPluginWeight)
	}
	r.Weight = int64(*weight)
	return nil
}
