package rows

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workload is a row of the table of workloads.
type Workload struct {
	Named
	// Done of Wanted parts of its rollout are done: Pods that are available and of the template that they are to have,
	// or completions of a Job. The status does not say which Pods are unavailable, so Done may be too low, never too
	// high.
	Done   int32 `json:"done"`
	Wanted int32 `json:"wanted"`
	// State is a sentence about its rollout.
	State  string   `json:"state"`
	Tone   Tone     `json:"tone"`
	Images []string `json:"images,omitempty"`
}

// rollout is how far a workload of Pods that keep running has come.
type rollout struct {
	// wanted Pods are to be there, toUpdate of them of the current template.
	wanted, toUpdate int32
	// there are all Pods but surplus ones, updated those of the current template, available those that are available.
	there, surplus, updated, available int32
	// word is what the kind calls one of its Pods.
	word string
}

// judge fills in the row's figures and sentence. It compares in the order in which kubectl rollout status does.
func (r rollout) judge(row *Workload) {
	unavailable, mayStay := max(0, r.there-r.available), r.wanted-r.toUpdate
	row.Wanted, row.Tone = r.wanted, Busy
	row.Done = min(r.wanted, r.available, max(0, r.updated+mayStay-unavailable))
	switch {
	case r.updated < r.toUpdate:
		row.State = fmt.Sprintf("%d of %d %ss are of the current template", r.updated, r.toUpdate, r.word)
	case r.surplus > 0:
		row.State = surplusText(r.surplus, r.word)
	case r.available < r.wanted:
		row.State = fmt.Sprintf("%d of %d %ss are available", r.available, r.wanted, r.word)
	case r.wanted == 0:
		row.State, row.Tone = "scaled to 0", Idle
	default:
		row.State, row.Tone, row.Done = "rolled out", Good, r.wanted
	}
}

func surplusText(count int32, word string) string {
	if count == 1 {
		return "1 surplus " + word + " is still there"
	}
	return fmt.Sprintf("%d surplus %ss are still there", count, word)
}

// leaving says of an object that is being deleted, or whose controller has not seen its newest spec, only that.
func (row *Workload) leaving(object metav1.Object, observed int64) bool {
	switch {
	case object.GetDeletionTimestamp() != nil:
		row.State, row.Tone = "is being deleted", Busy
	case observed < object.GetGeneration():
		row.State, row.Tone = "its controller has not seen the newest change yet", Busy
	default:
		return false
	}
	return true
}

// Deployment returns the row of a Deployment.
func Deployment(d *appsv1.Deployment) Workload {
	row := Workload{Named: named("Deployment", d), Images: images(&d.Spec.Template.Spec)}
	wanted := orOne(d.Spec.Replicas)
	rollout{wanted: wanted, toUpdate: wanted, there: d.Status.Replicas, surplus: d.Status.Replicas - wanted,
		updated: d.Status.UpdatedReplicas, available: d.Status.AvailableReplicas, word: "replica"}.judge(&row)
	if row.leaving(d, d.Status.ObservedGeneration) {
		return row
	}
	for _, c := range d.Status.Conditions {
		failed := c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue ||
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse
		if failed && row.Tone == Busy {
			row.State, row.Tone = shortened(row.State+"; "+because(c.Reason, c.Message)), Bad
		}
	}
	if d.Spec.Paused {
		row.State, row.Tone = "paused: "+row.State, Idle
	}
	return row
}

// StatefulSet returns the row of a StatefulSet.
func StatefulSet(s *appsv1.StatefulSet) Workload {
	row := Workload{Named: named("StatefulSet", s), Images: images(&s.Spec.Template.Spec)}
	wanted := orOne(s.Spec.Replicas)
	toUpdate := wanted
	switch rolling := s.Spec.UpdateStrategy.RollingUpdate; {
	case s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType:
		toUpdate = 0
	case rolling != nil && rolling.Partition != nil:
		toUpdate = max(0, wanted-*rolling.Partition)
	}
	rollout{wanted: wanted, toUpdate: toUpdate, there: s.Status.Replicas, surplus: s.Status.Replicas - wanted,
		updated: s.Status.UpdatedReplicas, available: s.Status.AvailableReplicas, word: "replica"}.judge(&row)
	row.leaving(s, s.Status.ObservedGeneration)
	return row
}

// DaemonSet returns the row of a DaemonSet. Its Pods are counted by the nodes that are to have one.
func DaemonSet(d *appsv1.DaemonSet) Workload {
	row := Workload{Named: named("DaemonSet", d), Images: images(&d.Spec.Template.Spec)}
	status := &d.Status
	toUpdate := status.DesiredNumberScheduled
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		toUpdate = 0
	}
	rollout{wanted: status.DesiredNumberScheduled, toUpdate: toUpdate, there: status.CurrentNumberScheduled,
		surplus: status.NumberMisscheduled, updated: status.UpdatedNumberScheduled, available: status.NumberAvailable,
		word: "Pod"}.judge(&row)
	if row.Tone == Idle {
		row.State = "no node is to run it"
	}
	row.leaving(d, status.ObservedGeneration)
	return row
}

// Job returns the row of a Job.
func Job(j *batchv1.Job) Workload {
	row := Workload{Named: named("Job", j), Images: images(&j.Spec.Template.Spec), Tone: Busy,
		Done: j.Status.Succeeded, Wanted: orOne(j.Spec.Parallelism)}
	if j.Spec.Completions != nil {
		row.Wanted = *j.Spec.Completions
	}
	row.State = fmt.Sprintf("%d of %d completed, %d running", row.Done, row.Wanted, j.Status.Active)
	if j.Spec.Completions == nil {
		row.Wanted = max(1, row.Done) // any one that succeeds is enough
		row.State = fmt.Sprintf("%d completed, %d running", row.Done, j.Status.Active)
	}
	if j.Status.Failed > 0 {
		row.State += fmt.Sprintf(", %d failed", j.Status.Failed)
	}
	for _, c := range j.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			row.condition(c)
		}
	}
	if j.DeletionTimestamp != nil {
		row.State, row.Tone = "is being deleted", Busy
	}
	return row
}

// condition adds what a condition of a Job says. Failed and Complete come after those that announce them, and win.
func (row *Workload) condition(c batchv1.JobCondition) {
	switch c.Type {
	case batchv1.JobSuspended:
		row.State, row.Tone = "suspended", Idle
	case batchv1.JobFailureTarget, batchv1.JobFailed:
		row.State, row.Tone = shortened("failed: "+because(c.Reason, c.Message)), Bad
	case batchv1.JobSuccessCriteriaMet:
		if row.Tone == Busy {
			row.State = "has succeeded, and its last Pods end"
		}
	case batchv1.JobComplete:
		row.State, row.Tone = "completed", Idle
		row.Done = row.Wanted
	}
}

func orOne(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// images are those of the main containers.
func images(spec *corev1.PodSpec) []string {
	all := make([]string, 0, len(spec.Containers))
	for i := range spec.Containers {
		all = append(all, spec.Containers[i].Image)
	}
	return all
}
