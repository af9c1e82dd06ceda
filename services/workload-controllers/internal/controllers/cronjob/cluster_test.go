package cronjob

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/events"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/write"
)

var (
	errRefused = errors.New("refused")
	errEnded   = errors.New("the controller has ended")
	jobsOf     = schema.GroupResource{Group: "batch", Resource: "jobs"}
)

// picture is all that there is at one version. Objects and maps are replaced, never changed.
type picture struct {
	cronJob *batchv1.CronJob
	jobs    map[string]*batchv1.Job
}

// cluster is an apiserver with one CronJob and its Jobs, and the controller over it, whose caches show each kind as
// it was a while ago. Writes are refused, their answers are lost, and the controller ends after any of them.
type cluster struct {
	client.Client
	*testing.T
	random     *rand.Rand
	now        time.Time
	history    []picture // by version
	seen       [2]int    // which of them the caches of CronJobs and of Jobs show
	cronJobs   toolscache.Indexer
	jobs       toolscache.Indexer
	controller *Controller
	started    map[string]int // how many Jobs were made, by scheduled time
	writes     int
	faulty     bool
	ended      bool
	log        []string
}

func newCluster(t *testing.T, seed uint64, edits ...edit) *cluster {
	first := hello(edits...)
	first.ResourceVersion = "0"
	c := &cluster{T: t, random: rand.New(rand.NewPCG(seed, 17)), now: at("08:00:00").Time, started: map[string]int{},
		history: []picture{{first, nil}}, faulty: true}
	c.begin()
	return c
}

func (c *cluster) last() picture { return c.history[len(c.history)-1] }

func (c *cluster) note(format string, args ...any) {
	c.log = append(c.log, c.now.Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
}

func (c *cluster) fail(format string, args ...any) {
	c.Helper()
	c.Fatalf("%s\nwhat happened last:\n%s", fmt.Sprintf(format, args...), strings.Join(c.log[max(0, len(c.log)-40):],
		"\n"))
}

// change makes the next picture.
func (c *cluster) change(edit func(p *picture, version string)) {
	next := picture{c.last().cronJob, maps.Clone(c.last().jobs)}
	if next.jobs == nil {
		next.jobs = map[string]*batchv1.Job{}
	}
	edit(&next, strconv.Itoa(len(c.history)))
	c.history = append(c.history, next)
}

// write is a request that changes something.
func (c *cluster) write(what string, edit func(p *picture, version string)) error {
	if c.ended {
		return errEnded
	}
	if c.faulty && c.random.IntN(8) == 0 {
		c.note("refused: %s", what)
		return errRefused
	}
	c.note("controller: %s", what)
	c.writes++
	c.change(edit)
	if c.faulty && c.random.IntN(5) == 0 {
		c.ended = true
		return errEnded
	}
	return nil
}

// begin restarts the controller. Its caches show everything, or lack one Job that the status lists.
func (c *cluster) begin() {
	c.note("the controller begins")
	c.cronJobs = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	c.jobs = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	c.lookAtAll()
	if active := c.last().cronJob.Status.Active; c.faulty && len(active) > 0 && c.random.IntN(2) == 0 {
		for c.seen[1] > 0 && c.history[c.seen[1]].jobs[active[len(active)-1].Name] != nil {
			c.seen[1]--
		}
		c.show()
	}
	owned, err := ownerindex.Of[*batchv1.Job](c.jobs)
	if err != nil {
		c.Fatal(err)
	}
	pending := gate.New()
	c.controller = &Controller{client: c, live: live{c}, owned: owned, gate: pending, recorder: c,
		now:      func() time.Time { return c.now },
		cronJobs: &write.Writer{Client: c, Kind: "cronjob", Gate: pending, Store: c.cronJobs},
		jobs:     &write.Writer{Client: c, Kind: "cronjob.job", Gate: pending, Store: c.jobs}}
	c.ended = false
}

// look lets the caches show what they showed or something later, however many changes that leaves out.
func (c *cluster) look() {
	for i := range c.seen {
		if c.random.IntN(2) == 0 {
			c.seen[i] += c.random.IntN(len(c.history) - c.seen[i])
		}
	}
	c.show()
}

func (c *cluster) lookAtAll() {
	c.seen = [2]int{len(c.history) - 1, len(c.history) - 1}
	c.show()
}

func (c *cluster) show() {
	c.Helper()
	var jobs []any
	for _, job := range c.history[c.seen[1]].jobs {
		jobs = append(jobs, job)
	}
	if err := errors.Join(c.cronJobs.Replace([]any{c.history[c.seen[0]].cronJob}, strconv.Itoa(c.seen[0])),
		c.jobs.Replace(jobs, strconv.Itoa(c.seen[1]))); err != nil {
		c.Fatal(err)
	}
}

// Record implements recorder.
func (c *cluster) Record(_ runtime.Object, e events.Event) {
	c.note("event: %s %s", e.Reason, e.Message)
}

// Get reads a CronJob from the cache.
func (c *cluster) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	c.history[c.seen[0]].cronJob.DeepCopyInto(into.(*batchv1.CronJob))
	return nil
}

// live reads Jobs from the apiserver.
type live struct{ *cluster }

// Get reads a Job.
func (l live) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	job := l.last().jobs[key.Name]
	if job == nil {
		return apierrors.NewNotFound(jobsOf, key.Name)
	}
	job.DeepCopyInto(into.(*batchv1.Job))
	return nil
}

// Create makes a Job, unless there is one of its name.
func (c *cluster) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	job := object.(*batchv1.Job)
	if c.last().jobs[job.Name] != nil {
		return apierrors.NewAlreadyExists(jobsOf, job.Name)
	}
	return c.write("make "+job.Name, func(p *picture, version string) {
		scheduled := job.Annotations[batchv1.CronJobScheduledTimestampAnnotation]
		if c.started[scheduled]++; c.started[scheduled] > 1 {
			c.fail("a second Job for %s", scheduled)
		}
		for _, other := range p.jobs {
			policy := p.cronJob.Spec.ConcurrencyPolicy
			if outcome(other) == "" && (policy == batchv1.ForbidConcurrent ||
				policy == batchv1.ReplaceConcurrent && other.DeletionTimestamp == nil) {
				c.fail("%s is made while %s runs", job.Name, other.Name)
			}
		}
		job.UID, job.ResourceVersion = types.UID("uid-"+version), version
		job.CreationTimestamp = metav1.NewTime(c.now)
		p.jobs[job.Name] = job.DeepCopy()
	})
}

// Delete ends a Job of that version, at once or in a while.
func (c *cluster) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	asked := (&client.DeleteOptions{}).ApplyOptions(options)
	job := c.last().jobs[object.GetName()]
	switch {
	case job == nil || job.UID != *asked.Preconditions.UID:
		return apierrors.NewNotFound(jobsOf, object.GetName())
	case job.ResourceVersion != *asked.Preconditions.ResourceVersion:
		return apierrors.NewConflict(jobsOf, job.Name, errRefused)
	}
	return c.write("delete "+job.Name, func(p *picture, version string) {
		if delete(p.jobs, job.Name); c.random.IntN(2) == 0 {
			p.jobs[job.Name] = changed(job, version, func(j *batchv1.Job) {
				j.DeletionTimestamp = &metav1.Time{Time: c.now}
			})
		}
	})
}

func changed(job *batchv1.Job, version string, edit func(*batchv1.Job)) *batchv1.Job {
	next := job.DeepCopy()
	next.ResourceVersion = version
	edit(next)
	return next
}

type statusWriter struct {
	client.SubResourceWriter
	of *cluster
}

// Status implements client.Client.
func (c *cluster) Status() client.SubResourceWriter { return statusWriter{of: c} }

// Update writes the status of the CronJob, if that is still of the version.
func (w statusWriter) Update(_ context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	sent := object.(*batchv1.CronJob)
	if sent.ResourceVersion != w.of.last().cronJob.ResourceVersion {
		return apierrors.NewConflict(jobsOf, sent.Name, errRefused)
	}
	return w.of.write(fmt.Sprintf("status %v", sent.Status), func(p *picture, version string) {
		p.cronJob = p.cronJob.DeepCopy()
		p.cronJob.Status, p.cronJob.ResourceVersion = *sent.Status.DeepCopy(), version
		sent.ResourceVersion = version
	})
}

// pass is one pass of the controller, and says when the next one comes.
func (c *cluster) pass() time.Duration {
	result, _ := c.controller.steps().Reconcile(c.Context(), reconcile.Request{NamespacedName: types.NamespacedName{
		Namespace: "default", Name: "hello"}})
	if c.ended {
		c.begin()
	}
	return result.RequeueAfter
}

// meddle lets a Job end, or go once the status has told of its time, or a user edit the CronJob.
func (c *cluster) meddle() {
	names := slices.Sorted(maps.Keys(c.last().jobs))
	if len(names) == 0 || c.random.IntN(8) == 0 {
		c.change(func(p *picture, version string) {
			p.cronJob = p.cronJob.DeepCopy()
			p.cronJob.ResourceVersion = version
			*p.cronJob.Spec.Suspend = c.random.IntN(4) == 0
			c.note("user: suspended %t", *p.cronJob.Spec.Suspend)
		})
		return
	}
	job := c.last().jobs[names[c.random.IntN(len(names))]]
	scheduled, err := time.Parse(time.RFC3339, job.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
	if err != nil {
		c.Fatal(err)
	}
	told := c.last().cronJob.Status.LastScheduleTime
	switch {
	case job.DeletionTimestamp != nil || c.random.IntN(4) == 0 && told != nil && !scheduled.After(told.Time):
		c.note("%s is gone", job.Name)
		c.change(func(p *picture, _ string) { delete(p.jobs, job.Name) })
	case outcome(job) == "":
		c.end(job)
	}
}

func (c *cluster) end(job *batchv1.Job) {
	how := []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed}[c.random.IntN(2)]
	c.note("%s is %s", job.Name, how)
	c.change(func(p *picture, version string) {
		p.jobs[job.Name] = changed(job, version, func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue}}
			j.Status.CompletionTime = &metav1.Time{Time: c.now}
		})
	})
}

// TestOnceThroughFailures: whatever is refused, lost or late, and wherever the controller ends, a scheduled time never
// has two Jobs, and Jobs that must not run at once never do. In the end each time has its Job, and nothing is written
// in between.
//
// POD-014 JOB-209 JOB-210 JOB-225
func TestOnceThroughFailures(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 19))
			policies := []batchv1.ConcurrencyPolicy{"Allow", "Forbid", "Replace"}
			c := newCluster(t, seed, policy(policies[seed%3]), func(c *batchv1.CronJob) {
				*c.Spec.SuccessfulJobsHistoryLimit, *c.Spec.FailedJobsHistoryLimit = random.Int32N(3), random.Int32N(3)
			})
			for range 300 {
				c.now = c.now.Add(time.Duration(random.IntN(10_000)) * time.Millisecond)
				switch draw := random.IntN(10); {
				case draw < 4:
					c.pass()
				case draw < 6:
					c.look()
				default:
					c.meddle()
				}
			}
			c.comesToRest()
		})
	}
}

// comesToRest lets time pass with nothing in the way.
func (c *cluster) comesToRest() {
	c.faulty = false
	c.change(func(p *picture, version string) {
		p.cronJob = p.cronJob.DeepCopy()
		p.cronJob.ResourceVersion, *p.cronJob.Spec.Suspend = version, false
	})
	until, before := c.now.Truncate(time.Minute).Add(4*time.Minute), 0
	for next := time.Duration(0); c.now.Before(until); {
		c.now = c.now.Add(next)
		for range 10 {
			for _, job := range c.last().jobs {
				if outcome(job) == "" {
					c.end(job)
				} else if job.DeletionTimestamp != nil {
					c.change(func(p *picture, _ string) { delete(p.jobs, job.Name) })
				}
			}
			c.lookAtAll()
			before = c.writes
			next = c.pass()
		}
		if c.writes != before {
			c.fail("at rest a pass writes")
		}
	}
	for minute := range 3 {
		at := until.Add(-time.Duration(minute+1) * time.Minute).UTC().Format(time.RFC3339)
		if c.started[at] != 1 {
			c.fail("%d Jobs for %s", c.started[at], at)
		}
	}
}
