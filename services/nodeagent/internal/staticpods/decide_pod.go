package staticpods

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podspec"
	"keelson.dev/kit/podview"
	"keelson.dev/kit/systempriority"
)

// Annotations for the source of a Pod, besides that of the mirror. Clients know them.
const (
	annotationSource = "kubernetes.io/config.source"
	annotationHash   = "kubernetes.io/config.hash"
	sourceFile       = "file"
)

// complete returns the Pod that the node runs for a written one: with its name and UID on this node, defaults, and
// a toleration of every taint that evicts Pods. The UID is computed from the content, so the same manifest is the
// same Pod, regardless of the file's name and restarts of the agent; another content is another Pod.
func complete(m manifest, node string) (*corev1.Pod, error) {
	written := m.pod
	if written.Name == "" {
		return nil, errors.New("metadata.name: Required value: generateName is nothing for a static Pod")
	}
	// Fields that only the API can set are left out: the file may be a copy from there.
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: written.Name + "-" + node, Namespace: written.Namespace,
			Labels: written.Labels, Annotations: map[string]string{}},
		Spec: *written.Spec.DeepCopy(),
	}
	for key, value := range written.Annotations {
		if key != corev1.MirrorPodAnnotationKey {
			pod.Annotations[key] = value
		}
	}
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	pod.Spec.NodeName = node
	pod.Annotations[annotationSource] = sourceFile
	pod.UID = hash(m.content, node)
	pod.Annotations[annotationHash] = string(pod.UID)

	podspec.DropUnserved(&pod.Spec)
	podspec.SetDefaults(&pod.Spec)
	if value, system := systempriority.Of(pod.Spec.PriorityClassName); system && pod.Spec.Priority == nil {
		pod.Spec.Priority = ptr.To(value)
	}
	tolerateEviction(&pod.Spec)
	return pod, check(pod)
}

// hash returns the UID of a content on a node: 32 hexadecimal digits.
func hash(content []byte, node string) types.UID {
	sum := sha256.Sum256(append([]byte(node+"\n"), content...))
	return types.UID(hex.EncodeToString(sum[:16]))
}

// tolerateEviction makes the Pod tolerate all taints of the effect NoExecute: it cannot run elsewhere.
func tolerateEviction(spec *corev1.PodSpec) {
	all := corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	for i := range spec.Tolerations {
		if spec.Tolerations[i].MatchToleration(&all) {
			return
		}
	}
	spec.Tolerations = append(spec.Tolerations, all)
}

// check returns the errors of a Pod, as the API would, and those of fields that a static Pod may not have.
func check(pod *corev1.Pod) error {
	metadata := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&pod.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metadata)
	errs = append(errs, podspec.ValidateAnnotations(pod.Annotations, metadata.Child("annotations"))...)
	spec := field.NewPath("spec")
	if len(pod.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(spec.Child("ephemeralContainers"),
			"static pods do not support ephemeral containers"))
	}
	errs = append(errs, podspec.Validate(&pod.Spec, spec, podspec.Options{})...)
	var references []string
	podview.VisitReferences(pod, func(r podview.Reference) {
		references = append(references, strings.TrimSpace(r.Resource+" "+r.Name))
	})
	if len(references) > 0 {
		errs = append(errs, field.Forbidden(spec, "static pods may not refer to objects of the API, but it names "+
			strings.Join(references, ", ")))
	}
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errors.New(oneLine(errs[0].Error()))
	}
	return fmt.Errorf("%s (and %d mistakes more)", oneLine(errs[0].Error()), len(errs)-1)
}
