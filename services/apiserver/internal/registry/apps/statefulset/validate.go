package statefulset

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/podspec"
	"keelson.dev/services/apiserver/internal/registry/core/podtemplate"
)

var (
	specPath   = field.NewPath("spec")
	statusPath = field.NewPath("status")
)

// immutableSpec names the fields that ValidateUpdate lets change.
const immutableSpec = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', " +
	"'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are " +
	"forbidden"

// Validate returns what is wrong with the spec of a defaulted StatefulSet.
func Validate(s *appsv1.StatefulSet) field.ErrorList {
	spec := &s.Spec
	templatePath := specPath.Child("template")
	errs := fieldcheck.NonNegativePtr(spec.Replicas, specPath.Child("replicas"))
	errs = append(errs, fieldcheck.WorkloadSelector(spec.Selector, spec.Template.Labels, "statefulset",
		specPath.Child("selector"), templatePath.Child("metadata", "labels"))...)
	errs = append(errs, podtemplate.ValidateAlwaysRunning(withClaims(spec), templatePath, "StatefulSet")...)
	errs = append(errs, validateClaims(spec.VolumeClaimTemplates, specPath.Child("volumeClaimTemplates"))...)
	errs = append(errs, fieldcheck.Optional(spec.ServiceName, specPath.Child("serviceName"),
		fieldcheck.DNSSubdomain)...)
	errs = append(errs, fieldcheck.RequiredOneOf(spec.PodManagementPolicy, specPath.Child("podManagementPolicy"),
		appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)...)
	errs = append(errs, validateUpdateStrategy(&spec.UpdateStrategy, specPath.Child("updateStrategy"))...)
	errs = append(errs, fieldcheck.NonNegative(spec.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	errs = append(errs, fieldcheck.NonNegativePtr(spec.RevisionHistoryLimit, specPath.Child("revisionHistoryLimit"))...)
	if spec.Ordinals != nil {
		errs = append(errs, fieldcheck.NonNegative(spec.Ordinals.Start, specPath.Child("ordinals", "start"))...)
	}
	return append(errs, validateRetention(spec.PersistentVolumeClaimRetentionPolicy,
		specPath.Child("persistentVolumeClaimRetentionPolicy"))...)
}

// withClaims is the template as a Pod is made from it: its claims are volumes, in place of those of the same name.
func withClaims(spec *appsv1.StatefulSetSpec) *corev1.PodTemplateSpec {
	if len(spec.VolumeClaimTemplates) == 0 {
		return &spec.Template
	}
	template := spec.Template
	volumes := slices.Clone(template.Spec.Volumes)
	for i := range spec.VolumeClaimTemplates {
		name := spec.VolumeClaimTemplates[i].Name
		claim := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}}
		if at := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == name }); at >= 0 {
			volumes[at] = claim
			continue
		}
		volumes = append(volumes, claim)
	}
	template.Spec.Volumes = volumes
	return &template
}

// validateClaims leaves the names to withClaims, which makes them names of volumes; two claims of one name would be
// one.
func validateClaims(claims []corev1.PersistentVolumeClaim, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range claims {
		name := claims[i].Name
		if slices.ContainsFunc(claims[:i], func(c corev1.PersistentVolumeClaim) bool { return c.Name == name }) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("metadata", "name"), name))
		}
		errs = append(errs, podspec.ValidateClaimSpec(&claims[i].Spec, path.Index(i).Child("spec"))...)
	}
	return errs
}

func validateUpdateStrategy(strategy *appsv1.StatefulSetUpdateStrategy, path *field.Path) field.ErrorList {
	rollingPath, rolling := path.Child("rollingUpdate"), strategy.RollingUpdate
	switch strategy.Type {
	case appsv1.OnDeleteStatefulSetStrategyType:
		if rolling != nil {
			return field.ErrorList{field.Invalid(rollingPath, rolling,
				fmt.Sprintf("only allowed for updateStrategy '%s'", appsv1.RollingUpdateStatefulSetStrategyType))}
		}
		return nil
	case appsv1.RollingUpdateStatefulSetStrategyType:
		if rolling == nil {
			return nil
		}
		errs := fieldcheck.NonNegativePtr(rolling.Partition, rollingPath.Child("partition"))
		return append(errs, validateMaxUnavailable(rolling, rollingPath.Child("maxUnavailable"))...)
	}
	return fieldcheck.RequiredOneOf(strategy.Type, path.Child("type"), appsv1.RollingUpdateStatefulSetStrategyType,
		appsv1.OnDeleteStatefulSetStrategyType)
}

func validateMaxUnavailable(rolling *appsv1.RollingUpdateStatefulSetStrategy, path *field.Path) field.ErrorList {
	if rolling.MaxUnavailable == nil {
		return nil
	}
	bound := *rolling.MaxUnavailable
	errs := fieldcheck.NonNegativeOrPercent(bound, path)
	if fieldcheck.IsZero(bound) {
		errs = append(errs, field.Invalid(path, bound, "cannot be 0"))
	}
	return append(errs, fieldcheck.AtMostHundredPercent(bound, path)...)
}

func validateRetention(
	policy *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy, path *field.Path,
) field.ErrorList {
	if policy == nil {
		return nil
	}
	types := []appsv1.PersistentVolumeClaimRetentionPolicyType{
		appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType}
	errs := fieldcheck.OneOf(policy.WhenDeleted, path.Child("whenDeleted"), types...)
	return append(errs, fieldcheck.OneOf(policy.WhenScaled, path.Child("whenScaled"), types...)...)
}

// ValidateUpdate returns what is wrong with the spec of s as the successor of old. What names the Pods and their claims
// stays as it is.
func ValidateUpdate(s, old *appsv1.StatefulSet) field.ErrorList {
	errs := Validate(s)
	kept := s.Spec
	kept.Replicas, kept.Ordinals, kept.Template = old.Spec.Replicas, old.Spec.Ordinals, old.Spec.Template
	kept.UpdateStrategy, kept.MinReadySeconds = old.Spec.UpdateStrategy, old.Spec.MinReadySeconds
	kept.RevisionHistoryLimit = old.Spec.RevisionHistoryLimit
	kept.PersistentVolumeClaimRetentionPolicy = old.Spec.PersistentVolumeClaimRetentionPolicy
	if !equality.Semantic.DeepEqual(kept, old.Spec) {
		errs = append(errs, field.Forbidden(specPath, immutableSpec))
	}
	return errs
}

// ValidateStatusUpdate returns what is wrong with s's status: counts that contradict each other.
func ValidateStatusUpdate(s, old *appsv1.StatefulSet) field.ErrorList {
	status := &s.Status
	errs := fieldcheck.NonNegative(status.ObservedGeneration, statusPath.Child("observedGeneration"))
	errs = append(errs, fieldcheck.CollisionCount(status.CollisionCount, old.Status.CollisionCount, statusPath)...)
	return append(errs, fieldcheck.ReplicaCounts(status.Replicas, status.ReadyReplicas, status.AvailableReplicas,
		statusPath, fieldcheck.Count{Name: "currentReplicas", Value: status.CurrentReplicas},
		fieldcheck.Count{Name: "updatedReplicas", Value: status.UpdatedReplicas})...)
}
