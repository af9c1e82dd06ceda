package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"keelson.dev/services/scheduler/internal/rules"
)

const (
	// maxWeight is the greatest weight within the arguments of a plugin that the API accepts.
	maxWeight = 100
	// maxPluginWeight bounds the weight of a plugin. The API has no bound; this one keeps sums of scores from overflow.
	maxPluginWeight = 10_000
)

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
	// unused says what has no effect, each with its path below the profile.
	unused []string
}

// readProfile returns the rules of a profile that ignores these resources, and what of the profile has no effect. The
// text of an error begins with the path below the profile.
func readProfile(file *schedulerv1.KubeSchedulerProfile, ignored []string) (rules.Profile, []string, error) {
	p := profile{rules: catalog(), filter: map[string]bool{}, score: map[string]bool{}, preempts: true,
		bindTimeout: defaultBindTimeout, ignored: ignored}
	if len(ignored) > 0 {
		if err := p.fitArgs(&schedulerv1.NodeResourcesFitArgs{}); err != nil {
			return rules.Profile{}, nil, err
		}
	}
	for _, r := range p.rules {
		p.filter[r.Name], p.score[r.Name] = true, true
	}
	if err := p.read(file); err != nil {
		return rules.Profile{}, nil, err
	}
	name := defaultProfile
	if file.SchedulerName != nil && *file.SchedulerName != "" {
		name = *file.SchedulerName
	}
	if messages := validation.IsDNS1123Subdomain(name); len(messages) > 0 {
		return rules.Profile{}, nil, fmt.Errorf("schedulerName: %q, it is part of the name of a Lease: %s", name,
			strings.Join(messages, "; "))
	}
	return rules.Profile{Name: name, Rules: p.switched(), Preempts: p.preempts,
		PreemptsAcross: p.across, BindTimeout: p.bindTimeout}, p.unused, nil
}

func (p *profile) read(file *schedulerv1.KubeSchedulerProfile) error {
	if err := checkShare(file.PercentageOfNodesToScore); err != nil {
		return err
	}
	if file.PercentageOfNodesToScore != nil {
		p.note("percentageOfNodesToScore: " + everyNode)
	}
	for i := range file.PluginConfig {
		name := file.PluginConfig[i].Name
		if slices.ContainsFunc(file.PluginConfig[:i], func(c schedulerv1.PluginConfig) bool { return c.Name == name }) {
			return fmt.Errorf("pluginConfig[%d].name: %q stands twice", i, name)
		}
		path := fmt.Sprintf("pluginConfig[%d]", i)
		if err := p.configure(path, &file.PluginConfig[i]); err != nil {
			return fmt.Errorf("%s.%w", path, err)
		}
	}
	if file.Plugins == nil {
		return nil
	}
	for _, at := range points(file.Plugins) {
		if err := p.apply(at); err != nil {
			return fmt.Errorf("plugins.%s.%w", at.name, err)
		}
	}
	return nil
}

func (p *profile) note(text string) { p.unused = append(p.unused, text) }

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

func (p *profile) rule(name string) *rules.Rule {
	i := slices.IndexFunc(p.rules, func(r rules.Rule) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return &p.rules[i]
}

// known reports whether there is a plugin of that name here.
func (p *profile) known(name string) bool {
	return name == preemption || slices.Contains(fixed, name) || p.rule(name) != nil
}

func (p *profile) unknown(name string) error {
	names := append(slices.Clone(fixed), preemption)
	for _, r := range p.rules {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return fmt.Errorf("there is no plugin %q, only %s", name, strings.Join(names, ", "))
}

// configure applies the arguments of one plugin, which stand at the path.
func (p *profile) configure(path string, c *schedulerv1.PluginConfig) error {
	if c.Name == preemption {
		return p.preemptionArgs(path, c.Args.Raw)
	}
	if read := readers[c.Name]; read != nil {
		return read(p, c.Args.Raw)
	}
	if reason, ok := absent[c.Name]; ok {
		p.note(fmt.Sprintf("%s: there is no plugin %s here, %s", path, c.Name, reason))
		return nil
	}
	if !p.known(c.Name) {
		return fmt.Errorf("name: %w", p.unknown(c.Name))
	}
	if raw := string(c.Args.Raw); raw != "" && raw != "null" && raw != "{}" {
		return fmt.Errorf("args: %s takes no arguments", c.Name)
	}
	return nil
}

// replace puts a rule with arguments in the place of the one without.
func (p *profile) replace(r rules.Rule) { *p.rule(r.Name) = r }
