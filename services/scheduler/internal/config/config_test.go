package config

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"keelson.dev/services/scheduler/internal/rules"
)

const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

// weights returns "name=weight" of each rule, with -filter or -score for a part that is off.
func weights(p rules.Profile) string {
	var out []string
	for _, r := range p.Rules {
		text := r.Name
		if r.Score != nil {
			text += "=" + strconv.FormatInt(r.Weight, 10)
		}
		if r.Filter != nil {
			text += "!"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

const all = "DynamicResources! ImageLocality=1 InterPodAffinity=2! NodeAffinity=2! NodeName! NodePorts! " +
	"NodeResourcesBalancedAllocation=1 NodeResourcesFit=1! " +
	"NodeUnschedulable! NodeVolumeLimits! PodTopologySpread=2! TaintToleration=3! VolumeBinding=1! " +
	"VolumeRestrictions! VolumeZone!"

func TestProfiles(t *testing.T) {
	for name, test := range map[string]struct{ yaml, name, want string }{
		"no profiles": {"", corev1.DefaultSchedulerName, all},
		"a name":      {"profiles: [{schedulerName: mine}]", "mine", all},
		"a weight": {"profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: 7}]}}}]",
			corev1.DefaultSchedulerName, strings.Replace(all, "NodeAffinity=2", "NodeAffinity=7", 1)},
		"the greatest weight": {"profiles: [{plugins: {multiPoint: {enabled: [{name: NodeAffinity, weight: 10000}]}}}]",
			corev1.DefaultSchedulerName, strings.Replace(all, "NodeAffinity=2", "NodeAffinity=10000", 1)},
		"weight 0 is the default": {"profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: 0}]}}}]",
			corev1.DefaultSchedulerName, all},
		"a score off": {"profiles: [{plugins: {score: {disabled: [{name: NodeAffinity}]}}}]",
			corev1.DefaultSchedulerName, strings.Replace(all, "NodeAffinity=2!", "NodeAffinity!", 1)},
		"a filter off": {"profiles: [{plugins: {filter: {disabled: [{name: NodeAffinity}]}}}]",
			corev1.DefaultSchedulerName, strings.Replace(all, "NodeAffinity=2!", "NodeAffinity=2", 1)},
		"a plugin off": {"profiles: [{plugins: {multiPoint: {disabled: [{name: NodeAffinity}]}}}]",
			corev1.DefaultSchedulerName, strings.Replace(all, "NodeAffinity=2! ", "", 1)},
		"all scores but one off": {"profiles: [{plugins: {score: {disabled: [{name: '*'}], enabled: [{name: " +
			"NodeResourcesFit, weight: 5}]}}}]", corev1.DefaultSchedulerName,
			"DynamicResources! InterPodAffinity! NodeAffinity! NodeName! NodePorts! NodeResourcesFit=5! " +
				"NodeUnschedulable! NodeVolumeLimits! PodTopologySpread! TaintToleration! VolumeBinding! " +
				"VolumeRestrictions! VolumeZone!"},
		"the extension point wins over multiPoint": {"profiles: [{plugins: {multiPoint: {enabled: [{name: " +
			"NodeAffinity, weight: 4}]}, score: {enabled: [{name: NodeAffinity, weight: 6}]}}}]",
			corev1.DefaultSchedulerName, strings.Replace(all, "NodeAffinity=2", "NodeAffinity=6", 1)},
		"fixed plugins may be named": {"profiles: [{plugins: {queueSort: {enabled: [{name: PrioritySort}]}, bind: " +
			"{enabled: [{name: DefaultBinder}]}}}]", corev1.DefaultSchedulerName, all},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse([]byte(head + test.yaml))
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Profiles) != 1 || c.Profiles[0].Name != test.name || weights(c.Profiles[0]) != test.want {
				t.Errorf("profile %s is %s, want %s: %s", c.Profiles[0].Name, weights(c.Profiles[0]), test.name,
					test.want)
			}
		})
	}
}

const spreadPath = "profiles[0].pluginConfig[0].args."

func spreadArgs(args string) string {
	return head + "profiles: [{pluginConfig: [{name: PodTopologySpread, args: {" + args + "}}]}]"
}

func spreadList(constraints string) string {
	return spreadArgs("defaultingType: List, defaultConstraints: [{" + constraints + "}]")
}

// The default constraints of Pods that belong to a ReplicaSet: SCH-092, SCH-093.
func TestSpreadDefaults(t *testing.T) {
	for name, test := range map[string]struct {
		yaml string
		want string
	}{
		"none given": {head, "kubernetes.io/hostname topology.kubernetes.io/zone"},
		"System": {spreadArgs("defaultingType: System"),
			"kubernetes.io/hostname topology.kubernetes.io/zone"},
		"List, SCH-092": {
			spreadList("maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway"),
			"topology.kubernetes.io/zone"},
		"an empty List": {spreadArgs("defaultingType: List"), ""},
		"an empty List that says its kind": {
			spreadArgs("apiVersion: kubescheduler.config.k8s.io/v1, kind: PodTopologySpreadArgs, defaultingType: List"),
			""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse([]byte(test.yaml))
			if err != nil {
				t.Fatal(err)
			}
			var keys []string
			for _, r := range c.Profiles[0].Rules {
				if r.Asks == nil {
					continue
				}
				for _, spec := range r.Asks(&corev1.Pod{}, labels.Everything()) {
					keys = append(keys, spec.TopologyKey)
				}
			}
			if got := strings.Join(keys, " "); got != test.want {
				t.Errorf("spreads over %q, want %q", got, test.want)
			}
		})
	}
}

const (
	fitPath   = spreadPath + "scoringStrategy."
	qualified = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " +
		"alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " +
		"'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)

func args(plugin, args string) string {
	return head + "profiles: [{pluginConfig: [{name: " + plugin + ", args: {" + args + "}}]}]"
}

func fitArgs(strategy string) string {
	return args("NodeResourcesFit", "scoringStrategy: {"+strategy+"}")
}

func shape(points string) string {
	return fitArgs("type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [" + points + "]}")
}

// Arguments that are accepted.
func TestArguments(t *testing.T) {
	for _, yaml := range []string{
		fitArgs("type: MostAllocated, resources: [{name: cpu, weight: 100}, {name: example.com/gpu}]"),
		shape("{utilization: 0, score: 10}, {utilization: 100, score: 0}"),
		args("NodeResourcesFit", "ignoredResources: [example.com/gpu], ignoredResourceGroups: [example.org]"),
		args("NodeResourcesBalancedAllocation", "resources: [{name: cpu, weight: 1}, {name: example.com/gpu}]"),
		args("InterPodAffinity", "hardPodAffinityWeight: 100, ignorePreferredTermsOfExistingPods: true"),
		args("NodeAffinity", "addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "+
			"[{matchExpressions: [{key: k, operator: Exists}]}]}}"),
	} {
		if _, err := Parse([]byte(yaml)); err != nil {
			t.Errorf("%s: %v", yaml, err)
		}
	}
	for yaml, want := range map[string]time.Duration{head: 10 * time.Minute,
		args("VolumeBinding", "bindTimeoutSeconds: 30"): 30 * time.Second,
		args("VolumeBinding", "bindTimeoutSeconds: 0"):  0} {
		if c, err := Parse([]byte(yaml)); err != nil || c.Profiles[0].BindTimeout != want {
			t.Errorf("%s: %v, %v", yaml, c.Profiles, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	const names = "only DefaultBinder, DefaultPreemption, DynamicResources, GangScheduling, ImageLocality, " +
		"InterPodAffinity, NodeAffinity, NodeName, NodePorts, " +
		"NodeResourcesBalancedAllocation, NodeResourcesFit, NodeUnschedulable, NodeVolumeLimits, PodGroupPodsCount, " +
		"PodTopologySpread, PrioritySort, SchedulingGates, TaintToleration, TopologyPlacement, VolumeBinding, " +
		"VolumeRestrictions, VolumeZone"
	for name, test := range map[string]struct{ yaml, want string }{
		"unknown plugin on": {head + "profiles: [{}, {schedulerName: b, plugins: {filter: {enabled: [{name: " +
			"NodeAffinity}, {name: Magic}]}}}]",
			`profiles[1].plugins.filter.enabled[1].name: there is no plugin "Magic", ` + names},
		"unknown plugin off": {head + "profiles: [{plugins: {score: {disabled: [{name: Magic}]}}}]",
			`profiles[0].plugins.score.disabled[0].name: there is no plugin "Magic", ` + names},
		"unknown plugin's args": {head + "profiles: [{pluginConfig: [{name: Magic}]}]",
			`profiles[0].pluginConfig[0].name: there is no plugin "Magic", ` + names},
		"SCH-004: queue order off": {head + "profiles: [{plugins: {multiPoint: {disabled: [{name: PrioritySort}]}}}]",
			"profiles[0].plugins.multiPoint.disabled[0].name: PrioritySort cannot be disabled"},
		"weight": {head +
			"profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: 10001}]}}}]",
			"profiles[0].plugins.score.enabled[0].weight: 10001, it must be from 1 to 10000"},
		"a negative weight": {head +
			"profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: -1}]}}}]",
			"profiles[0].plugins.score.enabled[0].weight: -1, it must be from 1 to 10000"},
		"a filter that scores": {head + "profiles: [{plugins: {score: {enabled: [{name: NodeName}]}}}]",
			"profiles[0].plugins.score.enabled[0].name: NodeName has no part at score, only ImageLocality, " +
				"InterPodAffinity, NodeAffinity, NodeResourcesBalancedAllocation, NodeResourcesFit, " +
				"PodTopologySpread, TaintToleration, VolumeBinding"},
		"a score that filters": {head + "profiles: [{plugins: {filter: {enabled: [{name: ImageLocality}]}}}]",
			"profiles[0].plugins.filter.enabled[0].name: ImageLocality has no part at filter, only " +
				"DynamicResources, InterPodAffinity, NodeAffinity, NodeName, NodePorts, NodeResourcesFit, " +
				"NodeUnschedulable, NodeVolumeLimits, PodTopologySpread, TaintToleration, VolumeBinding, " +
				"VolumeRestrictions, VolumeZone"},
		"a rule that preempts": {head + "profiles: [{plugins: {postFilter: {enabled: [{name: NodeName}]}}}]",
			"profiles[0].plugins.postFilter.enabled[0].name: NodeName has no part at postFilter, " +
				"only DefaultPreemption"},
		"a rule that sorts": {head + "profiles: [{plugins: {queueSort: {enabled: [{name: NodeName}]}}}]",
			"profiles[0].plugins.queueSort.enabled[0].name: NodeName has no part at queueSort, only PrioritySort"},
		"a rule that binds": {head + "profiles: [{plugins: {bind: {enabled: [{name: PrioritySort}]}}}]",
			"profiles[0].plugins.bind.enabled[0].name: PrioritySort has no part at bind, only DefaultBinder"},
		"unknown where nothing is switched": {head + "profiles: [{plugins: {reserve: {enabled: [{name: Magic}]}}}]",
			`profiles[0].plugins.reserve.enabled[0].name: there is no plugin "Magic", ` + names},
		"unknown for groups": {head + "profiles: [{plugins: {placementScore: {disabled: [{name: Magic}]}}}]",
			`profiles[0].plugins.placementScore.disabled[0].name: there is no plugin "Magic", ` + names},
		"on twice": {head + "profiles: [{plugins: {filter: {enabled: [{name: NodeName}, {name: NodeName}]}}}]",
			`profiles[0].plugins.filter.enabled[1].name: "NodeName" stands twice`},
		"args twice": {head + "profiles: [{pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}]}]",
			`profiles[0].pluginConfig[1].name: "NodeAffinity" stands twice`},
		"args of what is always on": {head + "profiles: [{pluginConfig: [{name: DefaultBinder, args: {a: b}}]}]",
			"profiles[0].pluginConfig[0].args: DefaultBinder takes no arguments"},
		"args of another plugin": {args("NodeAffinity", "kind: NodeResourcesFitArgs"),
			spreadPath + `kind: "NodeResourcesFitArgs", it must be "NodeAffinityArgs"`},
		"args of another version": {args("DefaultPreemption", "apiVersion: kubescheduler.config.k8s.io/v1beta3"),
			spreadPath +
				`apiVersion: "kubescheduler.config.k8s.io/v1beta3", it must be "kubescheduler.config.k8s.io/v1"`},
		"an unknown point": {head + "profiles: [{}, {schedulerName: b, plugins: {filters: {}}}]",
			"profiles[1].plugins.filters: KubeSchedulerConfiguration has no such field, or it stands twice"},
		"a field in other letters": {head + "podMaxbackoffSeconds: 5",
			"podMaxbackoffSeconds: KubeSchedulerConfiguration has no such field, or it stands twice"},
		"no text": {head + "profiles: [{schedulerName: [a]}]", "is no KubeSchedulerConfiguration: json: cannot " +
			"unmarshal array into Go struct field KubeSchedulerProfile.profiles.schedulerName of type string"},
		"a name": {head + "profiles: [{schedulerName: Mine}]", `profiles[0].schedulerName: "Mine", it is part of the ` +
			"name of a Lease: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' " +
			"or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for " +
			`validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		"a share of the nodes": {head + "percentageOfNodesToScore: 101",
			"percentageOfNodesToScore: 101, it must be from 0 to 100"},
		"a profile's share of the nodes": {head + "profiles: [{percentageOfNodesToScore: -1}]",
			"profiles[0].percentageOfNodesToScore: -1, it must be from 0 to 100"},
		"workers": {head + "parallelism: 0", "parallelism: 0, it must be greater than 0"},
		"a delay of centuries": {head + "podMaxBackoffSeconds: 31536001",
			"podMaxBackoffSeconds: 31536001, it must be from 1 to 31536000"},
		"a wait of centuries": {args("VolumeBinding", "bindTimeoutSeconds: 31536001"), spreadPath +
			"bindTimeoutSeconds: 31536001, it must be from 0 to 31536000"},
		"args of a rule without": {head + "profiles: [{pluginConfig: [{name: NodePorts, args: {a: b}}]}]",
			"profiles[0].pluginConfig[0].args: NodePorts takes no arguments"},
		"strategy": {fitArgs("type: Other"), fitPath +
			`type: "Other", it must be "LeastAllocated", "MostAllocated" or "RequestedToCapacityRatio"`},
		"resource": {fitArgs("resources: [{name: a b}]"), fitPath + `resources[0].name: "a b": ` + qualified},
		"resource's weight": {fitArgs("resources: [{name: cpu}, {name: gpu, weight: 101}]"), fitPath +
			"resources[1].weight: 101, it must be from 1 to 100"},
		"no shape": {fitArgs("type: RequestedToCapacityRatio"), fitPath +
			"requestedToCapacityRatio.shape: it must have at least one point"},
		"a shape of nothing": {fitArgs("requestedToCapacityRatio: {}"), fitPath +
			`requestedToCapacityRatio: it needs type "RequestedToCapacityRatio"`},
		"shape's utilization": {shape("{utilization: 101, score: 1}"), fitPath +
			"requestedToCapacityRatio.shape[0].utilization: 101, it must be from 0 to 100"},
		"shape's score": {shape("{utilization: 100, score: 11}"), fitPath +
			"requestedToCapacityRatio.shape[0].score: 11, it must be from 0 to 10"},
		"shape's order": {shape("{utilization: 5, score: 1}, {utilization: 5, score: 1}"), fitPath +
			"requestedToCapacityRatio.shape[1].utilization: 5, it must be greater than that of the point before, " +
			"which is 5"},
		"ignored resource": {args("NodeResourcesFit", "ignoredResources: ['a b']"), spreadPath +
			`ignoredResources[0]: "a b": ` + qualified},
		"ignored group": {args("NodeResourcesFit", "ignoredResourceGroups: [a/b]"), spreadPath +
			`ignoredResourceGroups[0]: "a/b", it must be what stands before the slash of resources, ` +
			`such as "example.com"`},
		"balance's weight": {args("NodeResourcesBalancedAllocation", "resources: [{name: cpu, weight: 2}]"),
			spreadPath +
				"resources[0].weight: 2, it must be 1"},
		"balance twice": {args("NodeResourcesBalancedAllocation", "resources: [{name: cpu}, {name: cpu}]"), spreadPath +
			`resources[1].name: "cpu" stands twice`},
		"bind timeout": {args("VolumeBinding", "bindTimeoutSeconds: -1"), spreadPath +
			"bindTimeoutSeconds: -1, it must be from 0 to 31536000"},
		"binding's shape": {args("VolumeBinding", "shape: [{utilization: 0, score: 11}]"), spreadPath +
			"shape[0].score: 11, it must be from 0 to 10"},
		"binding's order": {args("VolumeBinding", "shape: [{utilization: 9, score: 0}, {utilization: 9, score: 1}]"),
			spreadPath + "shape[1].utilization: 9, it must be greater than that of the point before, which is 9"},
		"an added affinity without terms": {args("NodeAffinity", "addedAffinity: {requiredDuringSchedulingIgnored"+
			"DuringExecution: {nodeSelectorTerms: []}}"), spreadPath + "addedAffinity.requiredDuringScheduling" +
			"IgnoredDuringExecution.nodeSelectorTerms: it must have at least one term"},
		"an added weight": {args("NodeAffinity", "addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "+
			"[{weight: 0, preference: {}}]}"), spreadPath + "addedAffinity.preferredDuringSchedulingIgnored" +
			"DuringExecution[0].weight: 0, it must be from 1 to 100"},
		"SCH-093: System with a list": {spreadArgs("defaultConstraints: [{maxSkew: 1}]"), spreadPath +
			`defaultConstraints: the list must be empty with defaultingType "System"`},
		"a defaulting type": {spreadArgs("defaultingType: Some"), spreadPath +
			`defaultingType: "Some", it must be "System" or "List"`},
		"SCH-091: a selector": {spreadList("maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway, " +
			"labelSelector: {}"), spreadPath + "defaultConstraints[0].labelSelector: it must be empty, the Services " +
			"and controllers of a Pod say what is counted"},
		"a skew": {spreadList("maxSkew: 0, topologyKey: z"), spreadPath +
			"defaultConstraints[0].maxSkew: 0, it must be greater than 0"},
		"a key": {spreadList("maxSkew: 1"), spreadPath + "defaultConstraints[0].topologyKey: it must not be empty"},
		"an action": {spreadList("maxSkew: 1, topologyKey: z"), spreadPath +
			`defaultConstraints[0].whenUnsatisfiable: "", it must be "DoNotSchedule" or "ScheduleAnyway"`},
		"domains of a soft constraint": {spreadList("maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway, " +
			"minDomains: 1"), spreadPath +
			"defaultConstraints[0].minDomains: 1, it must be greater than 0 and needs whenUnsatisfiable " +
			`"DoNotSchedule"`},
		"a constraint twice": {spreadList("maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway}, " +
			"{maxSkew: 2, topologyKey: z, whenUnsatisfiable: ScheduleAnyway"), spreadPath +
			`defaultConstraints[1]: topologyKey "z" with whenUnsatisfiable "ScheduleAnyway" stands twice`},
		"an unknown argument": {spreadArgs("defaults: []"), spreadPath +
			"defaults: PodTopologySpreadArgs has no such field, or it stands twice"},
		"a weight of affinity": {head + "profiles: [{pluginConfig: [{name: InterPodAffinity, args: " +
			"{hardPodAffinityWeight: 101}}]}]", spreadPath + "hardPodAffinityWeight: 101, it must be from 0 to 100"},
		"a profile twice": {head + "profiles: [{}, {schedulerName: default-scheduler}]",
			`profiles[1].schedulerName: "default-scheduler" stands twice, each profile needs its own`},
		"first delay": {head + "podInitialBackoffSeconds: 0",
			"podInitialBackoffSeconds: 0, it must be from 1 to 31536000"},
		"longest delay": {head + "podInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 4",
			"podMaxBackoffSeconds: 4, it must not be less than podInitialBackoffSeconds, which is 5"},
		"version": {
			"apiVersion: kubescheduler.config.k8s.io/v1alpha1\nkind: KubeSchedulerConfiguration",
			`apiVersion: "kubescheduler.config.k8s.io/v1alpha1", it must be "kubescheduler.config.k8s.io/v1"`},
		"SCH-004: the old switch": {head + "disablePreemption: true",
			"disablePreemption: KubeSchedulerConfiguration has no such field, or it stands twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.yaml))
			if err == nil || err.Error() != test.want {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

func TestBackoffAndUnused(t *testing.T) {
	c, err := Parse([]byte(head + "podInitialBackoffSeconds: 2\npodMaxBackoffSeconds: 60\nparallelism: " +
		"4\nleaderElection: {leaderElect: true}"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Backoff.First != 2*time.Second || c.Backoff.Max != time.Minute {
		t.Errorf("back-off is %v", c.Backoff)
	}
	if len(c.Unused) != 2 || !strings.HasPrefix(c.Unused[0], "parallelism: ") || !strings.HasPrefix(c.Unused[1],
		"leaderElection: ") {
		t.Errorf("unused are %q", c.Unused)
	}
	if d := Default(); d.Backoff.First != time.Second || d.Backoff.Max != 10*time.Second { // SCH-032
		t.Errorf("default back-off is %v", d.Backoff)
	}
}

func TestLoad(t *testing.T) {
	if c, err := Load(""); err != nil || len(c.Profiles) != 1 {
		t.Errorf("no file gives %v, %v", c.Profiles, err)
	}
	if _, err := Load(t.TempDir() + "/none"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that is not there gives %v", err)
	}
}
