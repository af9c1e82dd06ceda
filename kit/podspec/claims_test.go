package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The rules for the spec of a claim, shown in an ephemeral volume. A StatefulSet's claims and single claims have the
// same rules.
func TestClaimSpecs(t *testing.T) {
	claim := claimTemplate
	modes := func(modes ...corev1.PersistentVolumeAccessMode) func(*corev1.PodSpec) {
		return claim(func(s *corev1.PersistentVolumeClaimSpec) { s.AccessModes = modes })
	}
	storage := func(size string) func(*corev1.PodSpec) {
		return claim(func(s *corev1.PersistentVolumeClaimSpec) { s.Resources.Requests = quantities("storage", size) })
	}
	const at = "spec.volumes[0].ephemeral.volumeClaimTemplate.spec"
	const alone = at + ".accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"
	runAll(t, []row{
		{name: "for one Pod", change: modes("ReadWriteOncePod")},
		{name: "for one Pod, twice", change: modes("ReadWriteOncePod", "ReadWriteOncePod"), want: []string{alone}},
		{name: "for one Pod and one node", change: modes("ReadWriteOnce", "ReadWriteOncePod"), want: []string{alone}},
		{name: "for several nodes", change: modes("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce")},
		{name: "one byte", change: storage("1")},
		{name: "less than nothing", change: storage("-1"),
			want: []string{at + `.resources[storage]: Invalid value: "-1": must be greater than zero`}},
		{name: "another resource", change: claim(func(s *corev1.PersistentVolumeClaimSpec) {
			s.Resources.Requests = quantities("cpu", "1")
		}), want: []string{at + `.resources[storage]: Required value`}},
		{name: "a class", change: claim(func(s *corev1.PersistentVolumeClaimSpec) {
			s.StorageClassName = ptr.To("fast.example.com")
		})},
		{name: "a malformed class", change: claim(func(s *corev1.PersistentVolumeClaimSpec) {
			s.StorageClassName = ptr.To("A")
		}), want: []string{at + `.storageClassName: Invalid value: "A": ` + notASub}},
		{name: "a malformed class of attributes", change: claim(func(s *corev1.PersistentVolumeClaimSpec) {
			s.VolumeAttributesClassName = ptr.To("A")
		}), want: []string{at + `.volumeAttributesClassName: Invalid value: "A": ` + notASub}},
		{name: "no class of attributes", change: claim(func(s *corev1.PersistentVolumeClaimSpec) {
			s.VolumeAttributesClassName = ptr.To("")
		})},
		{name: "a block device", change: claim(func(s *corev1.PersistentVolumeClaimSpec) {
			s.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
		})},
		{name: "a malformed selector", change: claim(func(s *corev1.PersistentVolumeClaimSpec) {
			s.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k",
				Operator: "x"}}}
		}), want: []string{at +
			`.selector.matchExpressions[0].operator: Invalid value: "x": not a valid selector operator`}},
		{name: "malformed metadata", change: func(s *corev1.PodSpec) {
			claim(func(*corev1.PersistentVolumeClaimSpec) {})(s)
			template := s.Volumes[0].Ephemeral.VolumeClaimTemplate
			template.Labels, template.Annotations = map[string]string{"a b": ""}, map[string]string{"c d": ""}
		}, want: []string{
			`spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.annotations: Invalid value: "c d": ` + notAName,
			`spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.labels: Invalid value: "a b": ` + notAName}},
	})
}

// A volume is filled from a claim, or from an object of a group of its own; both fields say so in one way.
func TestClaimSources(t *testing.T) {
	from := func(group *string, kind, name string) func(*corev1.PodSpec) {
		return claimTemplate(func(s *corev1.PersistentVolumeClaimSpec) {
			s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: group, Kind: kind, Name: name}
		})
	}
	ref := func(group *string, kind, name string) func(*corev1.PodSpec) {
		return claimTemplate(func(s *corev1.PersistentVolumeClaimSpec) {
			s.DataSourceRef = &corev1.TypedObjectReference{APIGroup: group, Kind: kind, Name: name}
		})
	}
	const at = "spec.volumes[0].ephemeral.volumeClaimTemplate.spec"
	both := func(name string, namespace *string) func(*corev1.PodSpec) {
		return claimTemplate(func(s *corev1.PersistentVolumeClaimSpec) {
			s.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "c"}
			s.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: name,
				Namespace: namespace}
		})
	}
	const core = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
	snapshots := ptr.To("snapshot.storage.k8s.io")
	runAll(t, []row{
		{name: "a claim", change: from(nil, "PersistentVolumeClaim", "c")},
		{name: "a claim by an empty group", change: from(ptr.To(""), "PersistentVolumeClaim", "c")},
		{name: "a snapshot", change: from(snapshots, "VolumeSnapshot", "s")},
		{name: "another kind of the core group", change: from(nil, "Secret", "s"),
			want: []string{at + `.dataSource: Invalid value: "Secret": ` + core}},
		{name: "a malformed group", change: from(ptr.To("A"), "VolumeSnapshot", "s"),
			want: []string{at + `.dataSource.apiGroup: Invalid value: "A": ` + notASub}},
		{name: "reference to a claim", change: ref(nil, "PersistentVolumeClaim", "c")},
		{name: "reference to a snapshot", change: ref(snapshots, "VolumeSnapshot", "s")},
		{name: "reference to nothing", change: ref(nil, "", ""), want: []string{
			at + `.dataSourceRef: Invalid value: "": ` + core,
			at + `.dataSourceRef.kind: Required value`, at + `.dataSourceRef.name: Required value`}},
		{name: "reference to another kind of the core group", change: ref(ptr.To(""), "ConfigMap", "c"),
			want: []string{at + `.dataSourceRef: Invalid value: "ConfigMap": ` + core}},
		{name: "the same claim in both", change: both("c", nil)},
		{name: "two claims", change: both("d", nil),
			want: []string{at + `.dataSource: Invalid value: "PersistentVolumeClaim/c": must match dataSourceRef`}},
		{name: "reference into another namespace", change: claimTemplate(func(s *corev1.PersistentVolumeClaimSpec) {
			s.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "c",
				Namespace: ptr.To("other")}
		})},
		{name: "a claim, and one in another namespace", change: both("c", ptr.To("other")), want: []string{
			at + `.dataSource: Forbidden: may not be specified when dataSourceRef.namespace is specified`}},
		{name: "reference to a malformed group", change: ref(ptr.To("A"), "VolumeSnapshot", "s"),
			want: []string{at + `.dataSourceRef.apiGroup: Invalid value: "A": ` + notASub}},
	})
}

// The devices that a Pod claims and how its containers share them.
func TestDeviceClaims(t *testing.T) {
	pod := func(claim corev1.PodResourceClaim) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.ResourceClaims = []corev1.PodResourceClaim{claim} }
	}
	uses := func(uses ...corev1.ResourceClaim) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: ptr.To("n")},
				{Name: "b", ResourceClaimTemplateName: ptr.To("n")}}
			s.Containers[0].Resources.Claims = uses
		}
	}
	const at, used = "spec.resourceClaims[0]", "spec.containers[0].resources.claims"
	runAll(t, []row{
		{name: "malformed claim", change: pod(corev1.PodResourceClaim{Name: "a", ResourceClaimName: ptr.To("A")}),
			want: []string{at + `.resourceClaimName: Invalid value: "A": ` + notASub}},
		{name: "malformed template",
			change: pod(corev1.PodResourceClaim{Name: "a", ResourceClaimTemplateName: ptr.To("A")}),
			want:   []string{at + `.resourceClaimTemplateName: Invalid value: "A": ` + notASub}},
		{name: "name with a dot", change: pod(corev1.PodResourceClaim{Name: "a.b", ResourceClaimName: ptr.To("n")}),
			want: []string{at + `.name: Invalid value: "a.b": must not contain dots`}},
		{name: "two claims, whole", change: uses(corev1.ResourceClaim{Name: "a"}, corev1.ResourceClaim{Name: "b"})},
		{name: "one part of each", change: uses(corev1.ResourceClaim{Name: "a", Request: "r"},
			corev1.ResourceClaim{Name: "b", Request: "r"})},
		{name: "one claim twice", change: uses(corev1.ResourceClaim{Name: "a"}, corev1.ResourceClaim{Name: "a"}),
			want: []string{used + `[1]: Duplicate value: "a"`}},
		{name: "one part twice", change: uses(corev1.ResourceClaim{Name: "a", Request: "r"},
			corev1.ResourceClaim{Name: "a", Request: "r"}),
			want: []string{used + `[1]: Duplicate value: "a"`}},
		{name: "in part and whole", change: uses(corev1.ResourceClaim{Name: "a", Request: "r"},
			corev1.ResourceClaim{Name: "a"}), want: []string{used + `[1]: Duplicate value: "a"`}},
		{name: "part with a dot", change: uses(corev1.ResourceClaim{Name: "a", Request: "r.s"}),
			want: []string{used + `[0].request: Invalid value: "r.s": must not contain dots`}},
		{name: "in an init container", change: func(s *corev1.PodSpec) {
			withInit(corev1.Container{Name: "i", Image: "i", Resources: corev1.ResourceRequirements{
				Claims: []corev1.ResourceClaim{{Name: "c"}}}})(s)
		}, want: []string{`spec.initContainers[0].resources.claims[0].name: Not found: "c"`}},
	})
}
