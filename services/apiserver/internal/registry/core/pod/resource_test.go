package pod

import (
	"math"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/seconds"
)

// POD-070 POD-073 SAF-077 SAF-122: whatever a client claims, a new Pod is pending.
func TestPrepareForCreate(t *testing.T) {
	p := nginx()
	p.Generation = 100
	p.Status = corev1.PodStatus{Phase: corev1.PodSucceeded, PodIP: "1.2.3.4", QOSClass: corev1.PodQOSGuaranteed}
	p.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "r"}}
	objectWrites.PrepareForCreate(p)
	want := corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort}
	if !apiequality.Semantic.DeepEqual(p.Status, want) {
		t.Errorf("status %+v, want %+v", p.Status, want)
	}
	if p.Generation != 1 || p.Spec.EvictionResponders != nil {
		t.Errorf("generation %d, eviction responders %v", p.Generation, p.Spec.EvictionResponders)
	}
}

// POD-030: a gated Pod says so from the start.
func TestPrepareForCreateGated(t *testing.T) {
	p := nginx()
	p.Spec.NodeName = ""
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}}
	objectWrites.PrepareForCreate(p)
	want := []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingGated",
		Message: "Scheduling is blocked due to non-empty scheduling gates"}}
	if !apiequality.Semantic.DeepEqual(p.Status.Conditions, want) {
		t.Errorf("conditions %+v, want %+v", p.Status.Conditions, want)
	}
}

func TestPrepareForUpdate(t *testing.T) {
	old := nginx()
	rows := []struct {
		name   string
		change func(*corev1.Pod)
		want   int64
	}{
		{"nothing", func(*corev1.Pod) {}, 1},
		{"POD-049 the generation itself", func(p *corev1.Pod) { p.Generation = 7 }, 1},
		{"DEP-239 an annotation",
			func(p *corev1.Pod) { p.Annotations = map[string]string{"description": "my frontend running nginx"} }, 1},
		{"POD-051 an image", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nginx:2" }, 2},
		{"the status", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, 1},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := old.DeepCopy()
			row.change(p)
			objectWrites.PrepareForUpdate(p, old)
			if p.Generation != row.want {
				t.Errorf("generation %d, want %d", p.Generation, row.want)
			}
			if !apiequality.Semantic.DeepEqual(p.Status, old.Status) {
				t.Errorf("the update changed the status: %+v", p.Status)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	rows := []struct {
		name   string
		change func(*corev1.Pod)
		want   []string
	}{
		{"POD-001 POD-002 nginx", func(*corev1.Pod) {}, nil},
		{"POD-003 no container", func(p *corev1.Pod) { p.Spec.Containers = nil },
			[]string{`spec.containers: Required value`}},
		{"POD-004 SAF-011 an ephemeral container from the start", func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e", Image: "e"}}}
			Default(p)
		}, []string{`spec.ephemeralContainers: Forbidden: cannot be set on create`}},
		{"POD-068 a mirror Pod on its node",
			func(p *corev1.Pod) { p.Annotations = map[string]string{mirrorAnnotation: "hash"} }, nil},
		{
			"POD-068 a mirror Pod nowhere",
			func(p *corev1.Pod) {
				p.Annotations,
					p.Spec.NodeName = map[string]string{mirrorAnnotation: "hash"}, ""
			},
			[]string{
				`metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "": must set spec.nodeName if mirror pod annotation is set`,
			},
		},
		{
			"DEP-183 a deletion cost that is no number",
			func(p *corev1.Pod) {
				p.Annotations = map[string]string{"controller.kubernetes.io/pod-deletion-cost": "1.5"}
			},
			[]string{
				`metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "1.5": must be a 32bit integer`,
			},
		},
		{"an ephemeral volume whose claim has the longest name", ephemeral(253 - len("-data")), nil},
		{"one whose claim has a longer name", ephemeral(254 - len("-data")), []string{
			`spec.volumes[0].name: Invalid value: "data": PVC name "` + strings.Repeat("n", 254-len("-data")) +
				`-data": must be no more than 253 characters`}},
		{"a claim of the Pod's own by name", func(p *corev1.Pod) {
			ephemeral(3)(p)
			p.Spec.Volumes = append(p.Spec.Volumes, claimVolume("a", "nnn-other"), claimVolume("b", "nnn-data"))
		}, []string{`spec.volumes[2].persistentVolumeClaim.claimName: Invalid value: "nnn-data": ` +
			`must not reference a PVC that gets created for an ephemeral volume`}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := nginx()
			row.change(p)
			wantErrors(t, Validate(p), row.want...)
		})
	}
}

// ephemeral gives a Pod a name of so many characters, and an ephemeral volume.
func ephemeral(name int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Name = strings.Repeat("n", name)
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				}}}}}}
	}
}

func claimVolume(name, claim string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
}

func TestGraceful(t *testing.T) {
	rows := []struct {
		name    string
		change  func(*corev1.Pod)
		request *int64
		want    int64
	}{
		{"POD-151 SAF-127 the Pod's own", func(*corev1.Pod) {}, nil, 30},
		{"SAF-123 the Pod's own, set", func(p *corev1.Pod) {
			p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](
				600)
		}, nil, 600},
		{"POD-171 the caller's", func(*corev1.Pod) {}, ptr.To[int64](5), 5},
		{"POD-172 SAF-145 force", func(*corev1.Pod) {}, ptr.To[int64](0), 0},
		{"POD-171 beyond what a time can hold", func(*corev1.Pod) {}, ptr.To[int64](math.MaxInt64), seconds.Most},
		{"negative is the shortest", func(*corev1.Pod) {}, ptr.To[int64](-1), 1},
		{"SAF-144 on no node yet", func(p *corev1.Pod) { p.Spec.NodeName = "" }, ptr.To[int64](5), 0},
		{"SAF-144 succeeded", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, nil, 0},
		{"SAF-144 failed", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, ptr.To[int64](5), 0},
		{"unknown may still run", func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }, nil, 30},
		{"none of its own", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = nil }, nil, 0},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := nginx()
			row.change(p)
			options := &metav1.DeleteOptions{GracePeriodSeconds: row.request}
			if !graceful(p, options) || *options.GracePeriodSeconds != row.want {
				t.Errorf("got %d seconds, want %d", *options.GracePeriodSeconds, row.want)
			}
		})
	}
}

func TestFields(t *testing.T) {
	p := nginx()
	p.Spec.ServiceAccountName, p.Spec.HostNetwork = "sa", true
	p.Status.PodIPs, p.Status.NominatedNodeName = []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}}, "node-2"
	want := map[string]string{
		"spec.nodeName": "node-1", "spec.restartPolicy": "Always", "spec.schedulerName": "default-scheduler",
		"spec.serviceAccountName": "sa",
		"spec.hostNetwork":        "true", "status.phase": "Running", "status.podIP": "10.0.0.1",
		"status.nominatedNodeName": "node-2",
	}
	if len(fields) != len(want) {
		t.Errorf("%d selectable fields, want %d", len(fields), len(want))
	}
	for _, f := range fields {
		if got := f.Value(p); got != want[f.Label] {
			t.Errorf("%s is %q, want %q", f.Label, got, want[f.Label])
		}
		if f.Indexed != (f.Label == "spec.nodeName") {
			t.Errorf("%s: indexed is %t", f.Label, f.Indexed)
		}
	}
}

// SCH-078: the keys become requirements on the Pod's own values, once.
func TestJoinMatchLabelKeys(t *testing.T) {
	selector := func() *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{
			"app": "a"}}
	}
	term := func() corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{LabelSelector: selector(), MatchLabelKeys: []string{"hash", "absent"},
			MismatchLabelKeys: []string{"tenant"}}
	}
	p := nginx()
	p.Labels = map[string]string{"hash": "1", "tenant": "x"}
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{LabelSelector: selector(),
		MatchLabelKeys: []string{"hash"}}, {MatchLabelKeys: []string{"hash"}}}
	p.Spec.Affinity = &corev1.Affinity{
		PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			term()}},
		PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{PodAffinityTerm: term()}}},
	}
	objectWrites.PrepareForCreate(p)
	objectWrites.PrepareForCreate(p)
	in := metav1.LabelSelectorRequirement{Key: "hash", Operator: metav1.LabelSelectorOpIn, Values: []string{"1"}}
	notIn := metav1.LabelSelectorRequirement{Key: "tenant", Operator: metav1.LabelSelectorOpNotIn,
		Values: []string{"x"}}
	same := func(a, b metav1.LabelSelectorRequirement) bool { return apiequality.Semantic.DeepEqual(a, b) }
	apart := p.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0]
	for name, got := range map[string]*metav1.LabelSelector{
		"affinity":      p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector,
		"anti-affinity": apart.PodAffinityTerm.LabelSelector,
	} {
		if !slices.EqualFunc(got.MatchExpressions, []metav1.LabelSelectorRequirement{in, notIn}, same) {
			t.Errorf("%s selects %v", name, got.MatchExpressions)
		}
	}
	if got := p.Spec.TopologySpreadConstraints[0].LabelSelector.MatchExpressions; !slices.EqualFunc(got,
		[]metav1.LabelSelectorRequirement{in}, same) {
		t.Errorf("the spread constraint selects %v", got)
	}
	if got := p.Spec.TopologySpreadConstraints[1].LabelSelector; got != nil {
		t.Errorf("a null selector became %v", got)
	}
}
