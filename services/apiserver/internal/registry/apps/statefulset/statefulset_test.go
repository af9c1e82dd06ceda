package statefulset

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// nginx is the set of SET-008 after edits, defaulted.
func nginx(edits ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: "nginx",
			Selector:    &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "nginx"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:1.24",
					VolumeMounts: []corev1.VolumeMount{{Name: "www", MountPath: "/usr/share/nginx/html"}}}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim("www")},
		},
	}
	for _, edit := range edits {
		edit(s)
	}
	Default(s)
	return s
}

func claim(name string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// SET-005, SET-006, SET-013, SET-014, SET-015, SET-032, SET-083, SET-091.
func TestDefault(t *testing.T) {
	spec := nginx().Spec
	rolling := &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](0),
		MaxUnavailable: ptr.To(intstr.FromInt32(1))}
	if *spec.Replicas != 1 || *spec.RevisionHistoryLimit != 10 || spec.MinReadySeconds != 0 || spec.Ordinals != nil ||
		spec.PodManagementPolicy != "OrderedReady" || spec.UpdateStrategy.Type != "RollingUpdate" ||
		!equality.Semantic.DeepEqual(spec.UpdateStrategy.RollingUpdate, rolling) {
		t.Errorf("%+v", spec)
	}
	if got := *spec.PersistentVolumeClaimRetentionPolicy; got.WhenDeleted != "Retain" || got.WhenScaled != "Retain" {
		t.Errorf("%+v", got)
	}
	if got := spec.VolumeClaimTemplates[0]; got.APIVersion != "v1" || got.Kind != "PersistentVolumeClaim" ||
		*got.Spec.VolumeMode != "Filesystem" || got.Status.Phase != "Pending" {
		t.Errorf("%+v", got)
	}
	onDelete := nginx(func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = "OnDelete" })
	if onDelete.Spec.UpdateStrategy.RollingUpdate != nil {
		t.Error("OnDelete has got bounds of a rolling update")
	}
}

func policy(deleted, scaled appsv1.PersistentVolumeClaimRetentionPolicyType) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) {
		s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: deleted, WhenScaled: scaled}
	}
}

func unavailable(bound intstr.IntOrString) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) {
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &bound}
	}
}

func TestValidate(t *testing.T) {
	for _, row := range []struct {
		name string
		edit func(*appsv1.StatefulSet)
		want []string
	}{
		{"SET-007 the example", func(*appsv1.StatefulSet) {}, nil},
		{"SET-009 labels differ", func(s *appsv1.StatefulSet) { s.Spec.Template.Labels["app"] = "b" },
			[]string{"spec.template.metadata.labels: Invalid value: {\"app\":\"b\"}: `selector` does not match " +
				"template `labels`"}},
		{"SET-010 no selector", func(s *appsv1.StatefulSet) { s.Spec.Selector = nil },
			[]string{"spec.selector: Required value"}},
		{"empty selector", func(s *appsv1.StatefulSet) { s.Spec.Selector = &metav1.LabelSelector{} },
			[]string{"spec.selector: Invalid value: {}: empty selector is invalid for statefulset"}},
		{"SET-012 Never", func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.RestartPolicy = "Never" },
			[]string{`spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`}},
		{"SET-012 OnFailure", func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.RestartPolicy = "OnFailure" },
			[]string{`spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"`}},
		{"a deadline", func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.ActiveDeadlineSeconds = ptr.To[int64](5) },
			[]string{
				"spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet is not " +
					"Supported"}},
		{"SET-013 Parallel", func(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = "Parallel" }, nil},
		{"SET-013 unknown", func(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = "Any" },
			[]string{
				`spec.podManagementPolicy: Unsupported value: "Any": supported values: "OrderedReady", "Parallel"`}},
		{"SET-014 OnDelete", func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = "OnDelete" }, nil},
		{"SET-014 unknown", func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = "Recreate" },
			[]string{`spec.updateStrategy.type: Unsupported value: "Recreate"`}},
		{"OnDelete with bounds", func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.Type = "OnDelete"
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
		}, []string{"spec.updateStrategy.rollingUpdate: Invalid value"}},
		{"SET-015 negative partition", func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](-1)}
		}, []string{"spec.updateStrategy.rollingUpdate.partition: Invalid value: -1"}},
		{"SET-083 number", unavailable(intstr.FromInt32(5)), nil},
		{"SET-083 percentage", unavailable(intstr.FromString("10%")), nil},
		{"SET-083 zero", unavailable(intstr.FromInt32(0)),
			[]string{"spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0"}},
		{"SET-083 no percentage", unavailable(intstr.FromString("0%")),
			[]string{`spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "0%": cannot be 0`}},
		{"SET-083 below zero", unavailable(intstr.FromInt32(-1)),
			[]string{"spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: -1"}},
		{"SET-083 all", unavailable(intstr.FromString("100%")), nil},
		{"SET-083 more than all", unavailable(intstr.FromString("101%")),
			[]string{
				`spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%`}},
		{"SET-034 ordinals from zero", func(s *appsv1.StatefulSet) {
			s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{}
		}, nil},
		{"SET-034 ordinals below zero", func(s *appsv1.StatefulSet) {
			s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: -1}
		}, []string{"spec.ordinals.start: Invalid value: -1"}},
		{"SET-091 Delete", policy("Delete", "Delete"), nil},
		{"SET-091 unknown", policy("Keep", "Recycle"),
			[]string{
				`spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Keep": supported values: ` +
					`"Retain", "Delete"`,
				`spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Recycle"`}},
		{"SET-016 no grace", func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
		}, nil},
		{"negative counts", func(s *appsv1.StatefulSet) {
			s.Spec.Replicas, s.Spec.MinReadySeconds, s.Spec.RevisionHistoryLimit = ptr.To[int32](-1), -1,
				ptr.To[int32](-1)
		}, []string{"spec.replicas: Invalid value: -1", "spec.minReadySeconds: Invalid value: -1",
			"spec.revisionHistoryLimit: Invalid value: -1"}},
		{"a mount of nothing", func(s *appsv1.StatefulSet) { s.Spec.VolumeClaimTemplates = nil },
			[]string{`spec.template.spec.containers[0].volumeMounts[0].name: Not found: "www"`}},
		{"a claim in place of a volume", func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "www", VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}, nil},
		{"two claims of one name", func(s *appsv1.StatefulSet) {
			s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, claim("www"))
		}, []string{`spec.volumeClaimTemplates[1].metadata.name: Duplicate value: "www"`}},
		{"a claim of nothing", func(s *appsv1.StatefulSet) { s.Spec.VolumeClaimTemplates[0].Spec.AccessModes = nil },
			[]string{"spec.volumeClaimTemplates[0].spec.accessModes: Required value"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(nginx(row.edit)), row.want...) })
	}
}

// SET-004
func TestName(t *testing.T) {
	for name, valid := range map[string]bool{
		"web": true, "w": true, strings.Repeat("w", 63): true, "web-1": true,
		strings.Repeat("w", 64): false, "web.a": false, "Web": false, "web-": false, "-web": false, "": false,
	} {
		if messages := Resource.Strategy.Name(name, false); (len(messages) == 0) != valid {
			t.Errorf("%q: %v, want valid=%t", name, messages, valid)
		}
	}
}

// SET-011
func TestValidateUpdate(t *testing.T) {
	const forbidden = "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', " +
		"'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and " +
		"'minReadySeconds' are forbidden"
	for name, row := range map[string]struct {
		edit func(*appsv1.StatefulSet)
		want []string
	}{
		"everything that may change": {func(s *appsv1.StatefulSet) {
			s.Spec.Replicas, s.Spec.MinReadySeconds, s.Spec.RevisionHistoryLimit = ptr.To[int32](5), 9, ptr.To[int32](2)
			s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 3}
			s.Spec.Template.Spec.Containers[0].Image = "nginx:1.25"
			s.Spec.UpdateStrategy.Type = "OnDelete"
			policy("Delete", "Retain")(s)
		}, nil},
		"selector": {func(s *appsv1.StatefulSet) {
			s.Spec.Selector.MatchLabels["app"], s.Spec.Template.Labels["app"] = "b", "b"
		}, []string{forbidden}},
		"service":    {func(s *appsv1.StatefulSet) { s.Spec.ServiceName = "other" }, []string{forbidden}},
		"management": {func(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = "Parallel" }, []string{forbidden}},
		"claims": {func(s *appsv1.StatefulSet) {
			s.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests["storage"] = resource.MustParse("2Gi")
		}, []string{forbidden}},
		"an invalid one": {func(s *appsv1.StatefulSet) { s.Spec.Replicas = ptr.To[int32](-1) },
			[]string{"spec.replicas: Invalid value: -1"}},
	} {
		t.Run(name, func(t *testing.T) { fieldtest.Check(t, ValidateUpdate(nginx(row.edit), nginx()), row.want...) })
	}
}

// SET-017
func TestValidateStatusUpdate(t *testing.T) {
	status := func(s appsv1.StatefulSetStatus) *appsv1.StatefulSet { return &appsv1.StatefulSet{Status: s} }
	good := appsv1.StatefulSetStatus{Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, CurrentReplicas: 3,
		UpdatedReplicas: 3, CollisionCount: ptr.To[int32](2)}
	fieldtest.Check(t, ValidateStatusUpdate(status(good), status(good)))
	bad := appsv1.StatefulSetStatus{Replicas: 3, ReadyReplicas: 2, AvailableReplicas: 3, CurrentReplicas: 4,
		UpdatedReplicas: 4, CollisionCount: ptr.To[int32](1), ObservedGeneration: -1}
	fieldtest.Check(t, ValidateStatusUpdate(status(bad), status(good)),
		"status.observedGeneration: Invalid value: -1",
		"status.collisionCount: Invalid value: 1: cannot be decremented",
		"status.currentReplicas: Invalid value: 4: cannot be greater than status.replicas",
		"status.updatedReplicas: Invalid value: 4: cannot be greater than status.replicas",
		"status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas")
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
