package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"keelson.dev/services/scheduler/internal/rules"
)

// maxWeight is the greatest weight that the API accepts.
const maxWeight = 100

// profile is a profile in the making: its rules and which part of each is on.
type profile struct {
	rules       []rules.Rule
	filter      map[string]bool
	score       map[string]bool
	bindTimeout time.Duration
	// preempts is whether the plugin of that name is on.
	preempts bool
	// across is whether it may take the room of Pods on other nodes.
	across bool
	// ignored are resources that only extenders look at.
	ignored []string
}

// readProfile returns the rules of a profile that ignores these resources. The text of an error begins with the path
// below the profile.
func readProfile(file *schedulerv1.KubeSchedulerProfile, ignored []string) (rules.Profile, error) {
	p := profile{rules: catalog(), filter: map[string]bool{}, score: map[string]bool{}, preempts: true,
		bindTimeout: defaultBindTimeout, ignored: ignored}
	if len(ignored) > 0 {
		if err := p.fitArgs(&schedulerv1.NodeResourcesFitArgs{}); err != nil {
			return rules.Profile{}, err
		}
	}
	for _, r := range p.rules {
		p.filter[r.Name], p.score[r.Name] = true, true
	}
	for i := range file.PluginConfig {
		if err := p.configure(&file.PluginConfig[i]); err != nil {
			return rules.Profile{}, fmt.Errorf(".pluginConfig[%d].%w", i, err)
		}
	}
	if file.Plugins != nil {
		for _, point := range points(file.Plugins) {
			if err := p.apply(point); err != nil {
				return rules.Profile{}, fmt.Errorf(".plugins.%s.%w", point.name, err)
			}
		}
	}
	name := defaultProfile
	if file.SchedulerName != nil && *file.SchedulerName != "" {
		name = *file.SchedulerName
	}
	return rules.Profile{Name: name, Rules: p.switched(), Preempts: p.preempts,
		PreemptsAcross: p.across, BindTimeout: p.bindTimeout}, nil
}

// switched returns the rules without the parts that are off.
func (p *profile) switched() []rules.Rule {
	var out []rules.Rule
	for _, r := range p.rules {
		if !p.filter[r.Name] {
			r.Filter = nil
		}
		if !p.score[r.Name] {
			r.Score = nil
		}
		if r.Filter != nil || r.Score != nil {
			out = append(out, r)
		}
	}
	return out
}

// point is one extension point of the file and the parts of a rule that it means.
type point struct {
	name          string
	set           schedulerv1.PluginSet
	filter, score bool
	preempts      bool
}

// points returns the extension points, the one that stands for all first: the others win over it.
func points(p *schedulerv1.Plugins) []point {
	return []point{
		{"multiPoint", p.MultiPoint, true, true, true},
		{"preEnqueue", p.PreEnqueue, false, false, false},
		{"queueSort", p.QueueSort, false, false, false},
		{"preFilter", p.PreFilter, false, false, false},
		{"filter", p.Filter, true, false, false},
		{"postFilter", p.PostFilter, false, false, true},
		{"preScore", p.PreScore, false, false, false},
		{"score", p.Score, false, true, false},
		{"reserve", p.Reserve, false, false, false},
		{"permit", p.Permit, false, false, false},
		{"preBind", p.PreBind, false, false, false},
		{"bind", p.Bind, false, false, false},
		{"postBind", p.PostBind, false, false, false},
	}
}

func (p *profile) apply(at point) error {
	for i := range at.set.Disabled {
		if err := p.disable(at, at.set.Disabled[i].Name); err != nil {
			return fmt.Errorf("disabled[%d].%w", i, err)
		}
	}
	for i := range at.set.Enabled {
		if err := p.enable(at, &at.set.Enabled[i]); err != nil {
			return fmt.Errorf("enabled[%d].%w", i, err)
		}
	}
	return nil
}

func (p *profile) disable(at point, name string) error {
	switch {
	case slices.Contains(fixed, name):
		return fmt.Errorf("name: %s cannot be disabled", name)
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

func (p *profile) enable(at point, plugin *schedulerv1.Plugin) error {
	if slices.Contains(fixed, plugin.Name) {
		return nil
	}
	if plugin.Name == preemption {
		p.preempts = p.preempts || at.preempts
		return nil
	}
	if !p.known(plugin.Name) {
		return fmt.Errorf("name: %w", p.unknown(plugin.Name))
	}
	p.toggle(plugin.Name, at, true)
	if !at.score || plugin.Weight == nil || *plugin.Weight == 0 {
		return nil
	}
	if *plugin.Weight < 0 || *plugin.Weight > maxWeight {
		return fmt.Errorf("weight: %d, it must be from 1 to %d", *plugin.Weight, maxWeight)
	}
	p.rule(plugin.Name).Weight = int64(*plugin.Weight)
	return nil
}

func (p *profile) toggle(name string, at point, on bool) {
	if at.filter {
		p.filter[name] = on
	}
	if at.score {
		p.score[name] = on
	}
}

func (p *profile) rule(name string) *rules.Rule {
	i := slices.IndexFunc(p.rules, func(r rules.Rule) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return &p.rules[i]
}

func (p *profile) known(name string) bool { return p.rule(name) != nil }

func (p *profile) unknown(name string) error {
	names := append(slices.Clone(fixed), preemption)
	for _, r := range p.rules {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return fmt.Errorf("there is no plugin %q, only %s", name, strings.Join(names, ", "))
}

// configure applies the arguments of one plugin.
func (p *profile) configure(c *schedulerv1.PluginConfig) error {
	if c.Name == preemption {
		return p.preemptionArgs(c.Args.Raw)
	}
	if !p.known(c.Name) {
		return fmt.Errorf("name: %w", p.unknown(c.Name))
	}
	read := readers[c.Name]
	if read == nil {
		if len(c.Args.Raw) > 0 {
			return fmt.Errorf("args: %s takes no arguments", c.Name)
		}
		return nil
	}
	return read(p, c.Args.Raw)
}

// readers read the arguments of the plugins that take some.
var readers = map[string]func(*profile, []byte) error{
	"InterPodAffinity":                reader((*profile).affinityArgs),
	"NodeAffinity":                    reader((*profile).addedAffinity),
	"NodeResourcesBalancedAllocation": reader((*profile).balancedArgs),
	"NodeResourcesFit":                reader((*profile).fitArgs),
	"PodTopologySpread":               reader((*profile).spreadDefaults),
	"VolumeBinding":                   reader((*profile).bindingArgs),
}

// reader decodes the arguments and applies them; the text of an error of apply begins with a path below the arguments.
func reader[T any](apply func(*profile, *T) error) func(*profile, []byte) error {
	return func(p *profile, raw []byte) error {
		args := new(T)
		if err := yaml.UnmarshalStrict(raw, args); err != nil {
			return fmt.Errorf("args: reading %s: %w", reflect.TypeFor[T]().Name(), err)
		}
		if err := apply(p, args); err != nil {
			return fmt.Errorf("args.%w", err)
		}
		return nil
	}
}

// replace puts a rule with arguments in the place of the one without.
func (p *profile) replace(r rules.Rule) { *p.rule(r.Name) = r }
