// Package revision knows how a Deployment's history is written down: which ReplicaSet stands for which Pod template,
// under which number and under which name. It is pure.
//
//keelson:decision
package revision

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
)

// HashLabel keeps the ReplicaSets of one Deployment apart: it is on the ReplicaSet, in its selector and on its Pods.
const HashLabel = appsv1.DefaultDeploymentUniqueLabelKey

// Hash names a Pod template. Equal templates have equal hashes, in every process and at any time; collisions, when
// not nil, gives the same template another hash.
//
// The hash only names: whether two templates are equal is for SameTemplate to say.
func Hash(template *corev1.PodTemplateSpec, collisions *int32) string {
	bare := withoutHash(template)
	// JSON sorts the keys of maps and leaves out what is empty. Encoding an API type into memory cannot fail.
	encoded, _ := json.Marshal(&bare)
	sum := fnv.New32a()
	_, _ = sum.Write(encoded)
	if collisions != nil {
		_, _ = sum.Write(strconv.AppendInt(nil, int64(*collisions), 10))
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(sum.Sum32()), 10))
}

// SameTemplate reports whether two Pod templates are equal, the hash label apart. Every pass over a Deployment asks
// it of all its ReplicaSets: most differ in an image or a label, which is seen without going through all.
func SameTemplate(a, b *corev1.PodTemplateSpec) bool {
	if !sameLabels(a.Labels, b.Labels) || !slices.EqualFunc(a.Spec.Containers, b.Spec.Containers, sameImage) {
		return false
	}
	left, right := *a, *b
	left.Labels, right.Labels = nil, nil
	return apiequality.Semantic.DeepEqual(&left, &right)
}

func sameImage(a, b corev1.Container) bool { return a.Image == b.Image && a.Name == b.Name }

// sameLabels reports whether labels are equal, the hash apart.
func sameLabels(a, b map[string]string) bool {
	return covers(a, b) && covers(b, a)
}

// covers reports whether b has all that a has, the hash apart.
func covers(b, a map[string]string) bool {
	for key, value := range a {
		if its, has := b[key]; key != HashLabel && (!has || its != value) {
			return false
		}
	}
	return true
}

// WithHash returns the template with the hash among its labels. The template itself is left alone.
func WithHash(template *corev1.PodTemplateSpec, hash string) corev1.PodTemplateSpec {
	labelled := *template.DeepCopy()
	labelled.Labels = withLabel(template.Labels, hash)
	return labelled
}

// WithoutHash returns the template as a Deployment holds it: without the hash among its labels.
func WithoutHash(template *corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	bare := withoutHash(template)
	return *bare.DeepCopy()
}

// SelectorWithHash narrows a selector to the Pods of one template.
func SelectorWithHash(selector *metav1.LabelSelector, hash string) *metav1.LabelSelector {
	narrowed := selector.DeepCopy()
	narrowed.MatchLabels = withLabel(selector.MatchLabels, hash)
	return narrowed
}

// withoutHash shares all but the label map with the template.
func withoutHash(template *corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	bare := *template
	if _, ok := template.Labels[HashLabel]; !ok {
		return bare
	}
	bare.Labels = maps.Clone(template.Labels)
	delete(bare.Labels, HashLabel)
	return bare
}

func withLabel(labels map[string]string, hash string) map[string]string {
	labelled := map[string]string{}
	maps.Copy(labelled, labels)
	labelled[HashLabel] = hash
	return labelled
}
