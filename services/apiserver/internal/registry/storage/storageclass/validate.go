package storageclass

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
)

var (
	provisionerPath = field.NewPath("provisioner")
	parametersPath  = field.NewPath("parameters")
	reclaimPath     = field.NewPath("reclaimPolicy")
	bindingPath     = field.NewPath("volumeBindingMode")
	topologiesPath  = field.NewPath("allowedTopologies")
)

// Validate returns what is wrong with a defaulted class.
func Validate(c *storagev1.StorageClass) field.ErrorList {
	errs := fieldcheck.Required(c.Provisioner, provisionerPath,
		func(name string) []string { return validation.IsQualifiedName(strings.ToLower(name)) })
	errs = append(errs, fieldcheck.Parameters(c.Parameters, parametersPath)...)
	errs = append(errs, fieldcheck.OneOfPtr(c.ReclaimPolicy, reclaimPath,
		corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)...)
	errs = append(errs, fieldcheck.RequiredOneOf(ptr.Deref(c.VolumeBindingMode, ""), bindingPath,
		storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)...)
	return append(errs, validateTopologies(c.AllowedTopologies)...)
}

// ValidateUpdate returns what is wrong with c as the successor of old: what volumes were made by stays.
func ValidateUpdate(c, old *storagev1.StorageClass) field.ErrorList {
	errs := Validate(c)
	errs = append(errs, fieldcheck.Immutable(c.Provisioner, old.Provisioner, provisionerPath)...)
	errs = append(errs, fieldcheck.Immutable(c.Parameters, old.Parameters, parametersPath)...)
	errs = append(errs, fieldcheck.Immutable(c.ReclaimPolicy, old.ReclaimPolicy, reclaimPath)...)
	return append(errs, fieldcheck.Immutable(c.VolumeBindingMode, old.VolumeBindingMode, bindingPath)...)
}

func validateTopologies(terms []corev1.TopologySelectorTerm) field.ErrorList {
	var errs field.ErrorList
	for i, term := range terms {
		at := topologiesPath.Index(i)
		if slices.ContainsFunc(terms[:i], func(other corev1.TopologySelectorTerm) bool {
			return equality.Semantic.DeepEqual(other, term)
		}) {
			errs = append(errs, field.Duplicate(at.Child("matchLabelExpressions"), ""))
		}
		errs = append(errs, validateTerm(term.MatchLabelExpressions, at.Child("matchLabelExpressions"))...)
	}
	return errs
}

func validateTerm(expressions []corev1.TopologySelectorLabelRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	keys := sets.New[string]()
	for i, expression := range expressions {
		at := path.Index(i)
		if keys.Has(expression.Key) {
			errs = append(errs, field.Duplicate(at.Child("key"), expression.Key))
		}
		keys.Insert(expression.Key)
		errs = append(errs, fieldcheck.LabelKey(expression.Key, at.Child("key"))...)
		if len(expression.Values) == 0 {
			errs = append(errs, field.Required(at.Child("values"), ""))
		}
		for j, value := range expression.Values {
			if slices.Contains(expression.Values[:j], value) {
				errs = append(errs, field.Duplicate(at.Child("values").Index(j), value))
			}
		}
	}
	return errs
}
