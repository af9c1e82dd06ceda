package job

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// podsPreserved is told to who deletes Jobs without a word about their Pods.
const podsPreserved = "child pods are preserved by default when jobs are deleted; set " +
	"propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"

func warnings(j *batchv1.Job) []string {
	var all []string
	if messages := validation.IsDNS1123Label(j.Name); len(messages) > 0 {
		all = append(all, NameWarning(messages))
	}
	return append(all, SpecWarnings(&j.Spec, specPath)...)
}

func warningsOnUpdate(j, old *batchv1.Job) []string {
	if j.Generation == old.Generation {
		return nil
	}
	return SpecWarnings(&j.Spec, specPath)
}

// NameWarning tells what keeps a name, which goes into those of Pods and into hostnames, from being a DNS label.
func NameWarning(messages []string) string {
	return fmt.Sprintf(
		"metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "+
			"a DNS label is recommended: [%s]", strings.Join(messages, " "))
}

// SpecWarnings tells of a Job so large that its status may not hold all failed indexes.
func SpecWarnings(spec *batchv1.JobSpec, path *field.Path) []string {
	if !isIndexed(spec) || ptr.Deref(spec.Completions, 0) <= manyCompletions ||
		ptr.Deref(spec.Parallelism, 0) <= maxParallelismOfMany {
		return nil
	}
	return []string{
		fmt.Sprintf("%s: in Indexed Jobs with a number of completions higher than %d and a parallelism higher "+
			"than %d, Kubernetes might not be able to track completedIndexes when a big number of indexes fail", path,
			manyCompletions, maxParallelismOfMany)}
}

// warningsOnDelete tell of Pods that outlive their Job.
func warningsOnDelete(options *metav1.DeleteOptions) []string {
	if options.PropagationPolicy == nil && options.OrphanDependents == nil {
		return []string{podsPreserved}
	}
	return nil
}
