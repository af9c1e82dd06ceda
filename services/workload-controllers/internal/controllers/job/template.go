package job

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/workload-controllers/internal/claim"
)

// indexVariable is the environment variable with the completion index of the container's Pod.
const indexVariable = "JOB_COMPLETION_INDEX"

// maxPrefix is the longest generateName that the apiserver does not truncate.
const maxPrefix = 58

var kind = batchv1.SchemeGroupVersion.WithKind("Job")

// owner returns the Job as the Pods' controller. Decide decides which Pods it claims.
func owner(job *batchv1.Job) claim.Owner {
	return claim.Owner{Namespace: job.Namespace, Name: job.Name, UID: job.UID, Kind: kind,
		Deleting: job.DeletionTimestamp != nil}
}

// prototype returns the object from which every Pod of the Job is made. It shares the template's memory where
// possible.
func prototype(job *batchv1.Job) *corev1.Pod {
	template := &job.Spec.Template
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: job.Name + "-", Namespace: job.Namespace,
			Labels: template.Labels, Annotations: template.Annotations, Finalizers: template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{claim.Reference(owner(job))},
		},
		Spec: template.Spec,
	}
	if !slices.Contains(pod.Finalizers, tracking) {
		pod.Finalizers = append(slices.Clip(pod.Finalizers), tracking)
	}
	if isIndexed(job) {
		pod.Spec.Containers = withIndexVariable(pod.Spec.Containers)
		pod.Spec.InitContainers = withIndexVariable(pod.Spec.InitContainers)
	}
	return pod
}

// withIndexVariable returns the containers with the variable; a container that sets the variable keeps its value.
func withIndexVariable(containers []corev1.Container) []corev1.Container {
	containers = slices.Clone(containers)
	for i := range containers {
		has := func(v corev1.EnvVar) bool { return v.Name == indexVariable }
		if slices.ContainsFunc(containers[i].Env, has) {
			continue
		}
		path := fmt.Sprintf("metadata.labels['%s']", batchv1.JobCompletionIndexAnnotation)
		containers[i].Env = append(slices.Clip(containers[i].Env), corev1.EnvVar{Name: indexVariable,
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}})
	}
	return containers
}

// podOf returns one Pod of the Job.
func podOf(job *batchv1.Job, prototype *corev1.Pod, creation Creation) *corev1.Pod {
	if creation.Index == noIndex {
		return prototype
	}
	pod, index := *prototype, strconv.Itoa(creation.Index)
	pod.Labels, pod.Annotations = maps.Clone(pod.Labels), maps.Clone(pod.Annotations)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Labels[batchv1.JobCompletionIndexAnnotation] = index
	pod.Annotations[batchv1.JobCompletionIndexAnnotation] = index
	if job.Spec.BackoffLimitPerIndex != nil {
		pod.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(creation.attempt.failures)
		if ignored := creation.attempt.ignored; ignored > 0 {
			pod.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = strconv.Itoa(ignored)
		}
	}
	pod.Spec.Hostname = job.Name + "-" + index
	suffix := "-" + index + "-"
	pod.GenerateName = job.Name[:min(len(job.Name), maxPrefix-len(suffix))] + suffix
	return &pod
}
