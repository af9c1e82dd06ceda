package simulation

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/conditions"
	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/controllers/deployment"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/rank"
	"keelson.dev/services/workload-controllers/internal/replicas"
	"keelson.dev/services/workload-controllers/internal/revision"
)

// indexed are Pods as the controllers have them at hand.
func indexed(pods map[types.UID]*corev1.Pod) *podset.Index {
	index := podset.NewIndex()
	for _, pod := range pods {
		index.Upsert(pod)
	}
	return index
}

// passOfDeployment is one pass of the Deployment controller. It says whether anything was written.
func (c *cluster) passOfDeployment() bool {
	p := c.deployments
	in := deployment.Input{Now: c.now, Deployment: p.at(workloads).deployment,
		ReplicaSets: p.at(replicaSets).allSets(), Unfinished: map[types.UID]int{}}
	if !p.isOpen(in.Deployment.UID) {
		return false
	}
	index := indexed(p.at(members).pods)
	for _, set := range in.ReplicaSets {
		in.Unfinished[set.UID] = index.Unfinished(set.UID)
	}
	seen := in.Deployment.DeepCopy()
	plan := decided(c.fail, deployment.Decide, in)
	if !reflect.DeepEqual(seen, in.Deployment) {
		c.fail("the decision changed its input")
	}
	before := len(c.history)
	if errors.Is(c.applyDeployment(in, plan), errEnded) {
		p.begin()
	}
	return len(c.history) > before
}

// applyDeployment carries a plan out as the controller does: in its order, up to the first failure.
func (c *cluster) applyDeployment(in deployment.Input, plan deployment.Plan) error {
	if plan.Create != nil {
		if err := c.createSet(in, plan.Create.ReplicaSet); err != nil {
			return err
		}
	}
	for _, update := range plan.Updates {
		if err := c.updateSet(in, update); err != nil {
			return err
		}
	}
	for _, deletion := range plan.Deletes {
		if err := c.deleteSet(in, deletion.ReplicaSet); err != nil {
			return err
		}
	}
	if err := c.writeStatus(in.Deployment, plan.Status); err != nil {
		return err
	}
	if plan.Revision == "" {
		return nil
	}
	return c.deployments.write(in.Deployment.UID, workloads, "revision "+plan.Revision, func(r *rollout) {
		r.deployment = r.deployment.DeepCopy()
		metav1.SetMetaDataAnnotation(&r.deployment.ObjectMeta, revision.Annotation, plan.Revision)
	})
}

func (c *cluster) createSet(in deployment.Input, planned *appsv1.ReplicaSet) error {
	for _, set := range c.last().sets {
		if set.Name == planned.Name {
			if !c.stale {
				c.fail("ReplicaSet %s is created twice", planned.Name)
			}
			c.deployments.await(in.Deployment.UID, replicaSets)
			return errRefused // the name is taken
		}
	}
	set := planned.DeepCopy()
	set.UID, set.Generation = types.UID(fmt.Sprintf("rs-%d", c.next())), 1
	set.CreationTimestamp = metav1.NewTime(c.now)
	err := c.deployments.write(in.Deployment.UID, replicaSets,
		fmt.Sprintf("create %s with %d", image(set), *set.Spec.Replicas), func(r *rollout) { r.sets[set.UID] = set })
	if !errors.Is(err, errRefused) {
		return err
	}
	status := *in.Deployment.Status.DeepCopy()
	status.Conditions, _ = conditions.Deployment.Set(status.Conditions, appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ReplicaSetCreateError",
		Message: err.Error()}, c.now)
	return errors.Join(err, c.writeStatus(in.Deployment, status))
}

func (c *cluster) updateSet(in deployment.Input, update deployment.Update) error {
	to := update.To.DeepCopy()
	if c.last().sets[to.UID] != update.From {
		return errRefused // another version by now
	}
	if !reflect.DeepEqual(to.Spec, update.From.Spec) {
		to.Generation++
	}
	return c.deployments.write(in.Deployment.UID, replicaSets, fmt.Sprintf("%s %d -> %d (%s); before: %s", image(to),
		*update.From.Spec.Replicas, *to.Spec.Replicas, update.Reason, c), func(r *rollout) { r.sets[to.UID] = to })
}

func (c *cluster) deleteSet(in deployment.Input, set *appsv1.ReplicaSet) error {
	switch c.last().sets[set.UID] {
	case nil:
		return nil
	case set:
		return c.deployments.write(in.Deployment.UID, replicaSets, "delete "+image(set),
			func(r *rollout) { delete(r.sets, set.UID) })
	default:
		return errRefused // another version by now
	}
}

func (c *cluster) writeStatus(seen *appsv1.Deployment, status appsv1.DeploymentStatus) error {
	if apiequality.Semantic.DeepEqual(seen.Status, status) {
		return nil
	}
	if c.last().deployment != seen {
		return errRefused
	}
	return c.deployments.write(seen.UID, workloads, "status", func(r *rollout) {
		r.deployment = r.deployment.DeepCopy()
		r.deployment.Status = status
	})
}

// passOfSet is one pass of the ReplicaSet controller. It says whether anything was written.
func (c *cluster) passOfSet(uid types.UID) bool {
	p := c.replicas
	set := p.at(replicaSets).sets[uid]
	if set == nil || !p.isOpen(uid) {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		c.fail("selector: %v", err)
	}
	index := indexed(p.at(members).pods)
	in := replicas.Input{Now: c.now, ReplicaSet: set, Written: c.statuses[uid]}
	in.Counts = index.Observe(uid, podset.Spec{Selector: selector, Template: set.Spec.Template.Labels,
		MinReady: time.Duration(set.Spec.MinReadySeconds) * time.Second}, c.now)
	in.Candidates, in.Made = index.Ranked(uid, slices.Collect(maps.Keys(p.at(replicaSets).sets))), index.Made(uid)
	plan := replicas.Decide(in)
	if plan.Wake.After(c.wake) {
		c.wake = plan.Wake
	}
	before := len(c.history)
	if errors.Is(c.applySet(in, plan), errEnded) {
		p.begin()
	}
	return len(c.history) > before
}

// applySet carries a plan out as the controller does: what the pass came to is in the status even where it failed.
func (c *cluster) applySet(in replicas.Input, plan replicas.Plan) error {
	err := c.scale(in.ReplicaSet, plan)
	switch {
	case errors.Is(err, errEnded) || err == nil && !plan.WriteStatus:
		return err
	case err != nil:
		plan.Status.Conditions, _ = conditions.ReplicaSet.Set(plan.Status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "Failed",
			Message: err.Error()}, c.now)
	}
	return errors.Join(err, c.writeStatusOfSet(in.ReplicaSet, plan.Status))
}

// scale makes or ends Pods.
func (c *cluster) scale(set *appsv1.ReplicaSet, plan replicas.Plan) error {
	if err := c.replicas.inBatches(plan.Create, func(int) error { return c.createPod(set) }); err != nil {
		return err
	}
	var failed error
	for _, victim := range plan.Delete {
		err := c.deletePod(set, victim)
		if errors.Is(err, errEnded) {
			return err
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

func (c *cluster) createPod(set *appsv1.ReplicaSet) error {
	yes, name := true, fmt.Sprintf("%s-%d", set.Name, c.next())
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name), Labels: set.Spec.Template.Labels,
			CreationTimestamp: metav1.NewTime(c.now),
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: set.Name, UID: set.UID,
				Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", c.random.IntN(3)),
			Containers: set.Spec.Template.Spec.Containers},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	return c.replicas.write(set.UID, members, "create "+name, func(r *rollout) { r.pods[pod.UID] = pod })
}

func (c *cluster) deletePod(set *appsv1.ReplicaSet, victim rank.Pod) error {
	pod := c.last().pods[victim.UID]
	if pod == nil || podview.IsTerminating(pod) {
		c.replicas.await(set.UID, members)
		return nil
	}
	what := fmt.Sprintf("end %s of %s (ready %t)", pod.Name, image(set), victim.Ready)
	return c.replicas.write(set.UID, members, what, func(r *rollout) { r.end(victim.UID, c.now) })
}

func (c *cluster) writeStatusOfSet(seen *appsv1.ReplicaSet, status appsv1.ReplicaSetStatus) error {
	if apiequality.Semantic.DeepEqual(seen.Status, status) || c.last().sets[seen.UID] == nil {
		return nil
	}
	if c.last().sets[seen.UID] != seen {
		return errRefused
	}
	err := c.replicas.write(seen.UID, replicaSets, "status of "+image(seen), func(r *rollout) {
		next := seen.DeepCopy()
		next.Status = status
		r.sets[seen.UID] = next
	})
	if err == nil {
		c.statuses[seen.UID] = c.now
	}
	return err
}
