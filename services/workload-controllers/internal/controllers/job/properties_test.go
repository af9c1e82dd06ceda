package job

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
)

// anyJob returns a Job of any kind.
func anyJob(random *rand.Rand) *batchv1.Job {
	parallelism, completions := 1+random.Int32N(4), 1+random.Int32N(6)
	edits := []edit{[]edit{parallel(parallelism, completions), workQueue(parallelism),
		indexed(parallelism, completions),
		indexed(parallelism, completions)}[random.IntN(4)]}
	job := newJob(append(edits, backoffLimit(random.Int32N(12)))...)
	if isIndexed(job) && random.IntN(2) == 0 {
		perIndex(random.Int32N(3))(job)
		if random.IntN(2) == 0 {
			job.Spec.MaxFailedIndexes = ptrTo(random.Int32N(completions + 1))
		}
	}
	if random.IntN(3) == 0 {
		replacing([]batchv1.PodReplacementPolicy{batchv1.Failed, batchv1.TerminatingOrFailed}[random.IntN(2)])(job)
	}
	if random.IntN(8) == 0 && isIndexed(job) {
		job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{
			SucceededCount: ptrTo(1 + random.Int32N(completions))}}}
	}
	if random.IntN(10) == 0 {
		deadline(random.Int64N(600))(job)
	}
	return job
}

// checkPlan fails where a decision goes beyond what its input allows.
func checkPlan(c *cluster, in Input, plan Plan) {
	if !reflect.DeepEqual(plan, Decide(in)) {
		c.fail("two decisions over one input differ")
	}
	active, busy := 0, map[int]bool{}
	for _, pod := range in.Pods {
		if podview.IsActive(pod) {
			active++
		}
		if podview.IsActive(pod) || replacesFailedOnly(in.Job) && !podview.IsTerminal(pod) {
			busy[indexOf(pod)] = true
		}
	}
	if n := len(plan.Create); n > 0 && active+n > int(*in.Job.Spec.Parallelism) {
		c.fail("%d Pods are active and %d are made", active, n) // JOB-005, JOB-039
	}
	for _, creation := range plan.Create {
		if isIndexed(in.Job) && busy[creation.Index] {
			c.fail("index %d gets another Pod", creation.Index) // JOB-051, JOB-167
		}
		busy[creation.Index] = true
	}
	if isSuspended(in.Job) && len(plan.Create) > 0 {
		c.fail("a suspended Job gets Pods") // JOB-139
	}
}

// checkCounters fails unless every Pod that ought to be counted was, exactly once, and no other.
func checkCounters(c *cluster) {
	var succeeded, failed, both int32
	var done, kept indexes
	for _, pod := range c.due {
		index := indexOf(pod)
		inRange := !isIndexed(c.job) || index >= 0 && index < int(*c.job.Spec.Completions)
		switch {
		case !inRange:
		case pod.Status.Phase == corev1.PodSucceeded && podview.IsTerminating(pod) && !replacesFailedOnly(c.job):
			both++ // told as failed before it succeeded, or not
			kept = kept.with(max(0, index))
		case pod.Status.Phase == corev1.PodSucceeded:
			succeeded++
			done = done.with(max(0, index))
		default:
			failed++
		}
	}
	s := c.job.Status
	if uncounted := s.UncountedTerminatedPods; uncounted == nil || len(uncounted.Succeeded)+len(uncounted.Failed) > 0 {
		c.fail("some Pods stay uncounted")
	}
	if s.Failed < failed || s.Failed > failed+both {
		c.fail("%d failed, the counter says %d", failed, s.Failed)
	}
	if !isIndexed(c.job) {
		if s.Succeeded+s.Failed != succeeded+failed+both || s.Succeeded < succeeded {
			c.fail("%d succeeded, %d failed, %d may be either; the counters say %d and %d", succeeded, failed, both,
				s.Succeeded, s.Failed)
		}
		return
	}
	got := parseIndexes(s.CompletedIndexes, int(*c.job.Spec.Completions))
	if got.common(done) != done.count() || got.common(done.union(kept)) != got.count() ||
		s.Succeeded != int32(got.count()) {
		c.fail("indexes %s succeeded, perhaps %s; the status says %s, %d", done, kept, s.CompletedIndexes, s.Succeeded)
	}
	if s.FailedIndexes != nil && parseIndexes(*s.FailedIndexes, 1000).common(got) > 0 {
		c.fail("indexes %s failed and %s succeeded", *s.FailedIndexes, got)
	}
}

// checkEnd fails unless the Job has ended in one way, with all its Pods.
func checkEnd(c *cluster) {
	if isTrue(&c.job.Status, batchv1.JobComplete) == isTrue(&c.job.Status, batchv1.JobFailed) {
		c.fail("the Job is neither complete nor failed, or both") // JOB-121
	}
	for _, pod := range c.pods {
		if isTracked(pod) || !podview.IsTerminal(pod) {
			c.fail("Pod %s is left", pod.UID) // JOB-111, JOB-160
		}
	}
}

// finished fails when a Job has ended while a Pod has not.
func checkTerminal(c *cluster) {
	for _, pod := range c.pods {
		if isFinished(c.job) && !podview.IsTerminal(pod) {
			c.fail("the Job has ended, Pod %s has not", pod.UID) // JOB-124
		}
	}
}

// JOB-159, JOB-158, JOB-121, JOB-124: whatever happens in whatever order, wherever the controller crashes and however
// old the caches are of the one that takes over, each Pod is counted exactly once.
func TestCountersAreTrueAfterCrashes(t *testing.T) {
	for seed := range uint64(400) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			c := newCluster(t, seed, anyJob(random))
			c.crashes, c.fresh = 60, random.IntN(2) == 0
			for range 250 {
				if random.IntN(40) == 0 {
					meddle(c, random)
				}
				c.step()
				if c.fresh {
					checkTerminal(c)
				}
			}
			resume(c)
			c.settle()
			checkEnd(c)
			checkCounters(c)
		})
	}
}

// JOB-005, JOB-039, JOB-051, JOB-167: with a cache that is as new as the controller's own writes there are never more
// Pods at work than asked for, nor two for one index, nor, with policy Failed, one beside another that is ending.
func TestPodsAreNeverTooMany(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			c := newCluster(t, seed, anyJob(random))
			c.crashes = 60
			for range 250 {
				if random.IntN(50) == 0 && len(c.pods) > 0 {
					pods := slices.Sorted(maps.Keys(c.pods))
					c.delete(pods[random.IntN(len(pods))])
				}
				c.step()
				checkPods(c)
			}
			c.settle()
			checkEnd(c)
		})
	}
}

func checkPods(c *cluster) {
	active, ofIndex := int32(0), map[int]int{}
	for _, pod := range c.pods {
		if podview.IsTerminal(pod) {
			continue
		}
		counts := podview.IsActive(pod) || replacesFailedOnly(c.job)
		if counts {
			active++
			ofIndex[indexOf(pod)]++
		}
	}
	if active > *c.job.Spec.Parallelism {
		c.fail("%d Pods are at work", active)
	}
	for index, n := range ofIndex {
		if index != noIndex && n > 1 {
			c.fail("index %d has %d Pods", index, n)
		}
	}
}

// meddle does what a user may do at any time.
func meddle(c *cluster, random *rand.Rand) {
	job := c.job.DeepCopy()
	switch pods := slices.Sorted(maps.Keys(c.pods)); {
	case random.IntN(3) == 0 && len(pods) > 0:
		uid := pods[random.IntN(len(pods))]
		c.note("user deletes %s", uid)
		await := c.awaitPods
		c.delete(uid)
		c.awaitPods = await
		return
	case isFinished(job):
		return
	case random.IntN(2) == 0:
		job.Spec.Suspend = ptrTo(!isSuspended(job))
	default:
		job.Spec.Parallelism = ptrTo(random.Int32N(5))
	}
	c.note("user: suspended %t, parallelism %d", isSuspended(job), *job.Spec.Parallelism)
	c.putJob(job)
}

// resume lets the Job come to its end.
func resume(c *cluster) {
	c.mortal = false
	job := c.job.DeepCopy()
	job.Spec.Suspend, job.Spec.Parallelism = ptrTo(false), ptrTo(max(1, *job.Spec.Parallelism))
	c.putJob(job)
}

// JOB-066, JOB-077, JOB-078, JOB-045: the examples of the documentation, to their end.
func TestExamples(t *testing.T) {
	fails := func(*corev1.Pod) corev1.PodPhase { return corev1.PodFailed }
	evenFail := func(pod *corev1.Pod) corev1.PodPhase {
		return []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded}[indexOf(pod)%2]
	}
	maxFailed := func(n int32) edit { return func(job *batchv1.Job) { job.Spec.MaxFailedIndexes = &n } }
	once := map[int]bool{}
	oneFailsOnce := func(pod *corev1.Pod) corev1.PodPhase {
		if index := indexOf(pod); index == 1 && !once[index] {
			once[index] = true
			return corev1.PodFailed
		}
		return corev1.PodSucceeded
	}
	for name, c := range map[string]struct {
		job  *batchv1.Job
		ends func(*corev1.Pod) corev1.PodPhase
		want string
	}{
		"always failing": {newJob(backoffLimit(4)), fails, "Failed BackoffLimitExceeded, 0 succeeded [], 5 failed []"},
		"a limit by index": {newJob(indexed(3, 10), perIndex(1), maxFailed(5)), evenFail,
			"Failed FailedIndexes, 5 succeeded [1,3,5,7,9], 10 failed [0,2,4,6,8]"},
		"one index fails once": {newJob(indexed(3, 3)), oneFailsOnce,
			"Complete CompletionsReached, 3 succeeded [0-2], 1 failed []"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t, 1, c.job)
			cluster.script = c.ends
			cluster.settle()
			s, failedIndexes, end := cluster.job.Status, "", ""
			if s.FailedIndexes != nil {
				failedIndexes = *s.FailedIndexes
			}
			for _, condition := range s.Conditions {
				end = fmt.Sprint(condition.Type, " ", condition.Reason)
			}
			if got := fmt.Sprintf("%s, %d succeeded [%s], %d failed [%s]", end, s.Succeeded, s.CompletedIndexes,
				s.Failed, failedIndexes); got != c.want {
				cluster.fail("%s, want %s", got, c.want)
			}
			checkEnd(cluster)
			checkCounters(cluster)
		})
	}
	// Four failed indexes are allowed: the fifth stops the Job.
	c := newCluster(t, 1, newJob(indexed(3, 10), perIndex(1), maxFailed(4)))
	c.script = evenFail
	c.settle()
	if last := c.job.Status.Conditions; last[len(last)-1].Reason != batchv1.JobReasonMaxFailedIndexesExceeded {
		c.fail("the fifth failed index of four ends the Job by %+v", last)
	}
}
