package job

import (
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/podview"
)

// news is a change that the cache has yet to hear of; a nil Pod is one that is gone.
type news struct {
	version int
	uid     types.UID
	pod     *corev1.Pod
	job     *batchv1.Job
}

// view is what the cache of one process shows.
type view struct {
	job               *batchv1.Job
	pods              map[types.UID]*corev1.Pod
	backlog           []news
	seenJob, seenPods int
}

// cluster is one Job with its Pods, as they are and as the caches of two processes show them, of which one leads.
// Objects are replaced, never changed. The leader may crash between any two of its writes, and before it hears of the
// last one; then the other one leads, whose cache may be older or newer.
type cluster struct {
	t       *testing.T
	random  *rand.Rand
	now     time.Time
	version int

	job  *batchv1.Job
	pods map[types.UID]*corev1.Pod
	// due are the Pods that ought to be counted: the finalizer was taken off them when they had ended.
	due map[types.UID]*corev1.Pod

	// view is the leader's, standby the other's.
	view, standby *view
	// awaitJob and awaitPods are the versions that the gate waits for; since is when this process took over.
	awaitJob, awaitPods, since int
	written                    time.Time

	// crashes is how likely each write is to be the last, in a thousand. A fresh process has heard of everything.
	crashes int
	fresh   bool
	// mortal Pods fail, too. Where there is a script, it says how a Pod ends that is not ended by somebody.
	mortal bool
	script func(*corev1.Pod) corev1.PodPhase
	log    []string
}

func newCluster(t *testing.T, seed uint64, job *batchv1.Job) *cluster {
	c := &cluster{t: t, random: rand.New(rand.NewPCG(seed, 3)), now: start, pods: map[types.UID]*corev1.Pod{},
		due: map[types.UID]*corev1.Pod{}, mortal: true, fresh: true,
		view: &view{pods: map[types.UID]*corev1.Pod{}}, standby: &view{pods: map[types.UID]*corev1.Pod{}}}
	job.Status = batchv1.JobStatus{}
	c.putJob(job)
	c.hear()
	return c
}

func (c *cluster) note(format string, args ...any) {
	c.log = append(c.log, fmt.Sprintf(format, args...))
}

func (c *cluster) fail(format string, args ...any) {
	c.t.Helper()
	var pods []string
	for _, uid := range slices.Sorted(maps.Keys(c.pods)) {
		pod := c.pods[uid]
		pods = append(pods, fmt.Sprintf("%s %s/%d tracked %t deleting %t", uid, pod.Status.Phase, indexOf(pod),
			isTracked(pod), pod.DeletionTimestamp != nil))
	}
	c.t.Fatalf("%s\nstatus %+v\n%s\nwhat happened last:\n%s", fmt.Sprintf(format, args...), c.job.Status,
		strings.Join(pods, "\n"), strings.Join(c.log[max(0, len(c.log)-40):], "\n"))
}

func (c *cluster) putJob(job *batchv1.Job) {
	c.version++
	job.ResourceVersion = strconv.Itoa(c.version)
	c.job = job
	c.tell(news{version: c.version, job: job})
}

// put replaces a Pod. One that is being deleted, has ended and has no finalizer is gone.
func (c *cluster) put(pod *corev1.Pod) {
	c.version++
	pod.ResourceVersion = strconv.Itoa(c.version)
	if podview.IsTerminating(pod) && podview.IsTerminal(pod) && !isTracked(pod) {
		delete(c.pods, pod.UID)
		c.tell(news{version: c.version, uid: pod.UID})
		return
	}
	c.pods[pod.UID] = pod
	c.tell(news{version: c.version, uid: pod.UID, pod: pod})
}

func (c *cluster) tell(n news) {
	for _, v := range []*view{c.view, c.standby} {
		v.backlog = append(v.backlog, n)
	}
}

// hearOne lets a cache hear of the next change of the Job, or of the Pods: the two are watched apart.
func (v *view) hearOne(ofJob bool) {
	at := slices.IndexFunc(v.backlog, func(n news) bool { return (n.job != nil) == ofJob })
	if at < 0 {
		return
	}
	n := v.backlog[at]
	v.backlog = slices.Delete(v.backlog, at, at+1)
	switch {
	case n.job != nil:
		v.job, v.seenJob = n.job, n.version
	case n.pod != nil:
		v.pods[n.uid], v.seenPods = n.pod, n.version
	default:
		delete(v.pods, n.uid)
		v.seenPods = n.version
	}
}

// hear lets both caches hear of everything.
func (c *cluster) hear() {
	for _, v := range []*view{c.view, c.standby} {
		for len(v.backlog) > 0 {
			v.hearOne(v.backlog[0].job != nil)
		}
	}
}

// crash ends the process; another takes over.
func (c *cluster) crash() {
	c.note("crash")
	c.view, c.standby = c.standby, c.view
	if c.fresh {
		c.hear()
	}
	c.awaitJob, c.awaitPods, c.written, c.since = 0, 0, time.Time{}, c.version
}

// dies reports whether the process ends here.
func (c *cluster) dies() bool {
	if c.random.IntN(1000) >= c.crashes {
		return false
	}
	c.crash()
	return true
}

// input is what a pass observes in the cache.
func (c *cluster) input() Input {
	in := inputOf(c.view.job, "")
	in.Now, in.Written = c.now, c.written
	var all []*corev1.Pod
	for _, uid := range slices.Sorted(maps.Keys(c.view.pods)) {
		all = append(all, c.view.pods[uid])
	}
	in.Ended = endings(all)
	for _, pod := range all {
		if openPods.Holds(pod) || isTracked(pod) {
			in.Pods = append(in.Pods, pod)
		}
	}
	if uncounted := c.view.job.Status.UncountedTerminatedPods; uncounted != nil {
		for _, uid := range slices.Concat(uncounted.Succeeded, uncounted.Failed) {
			if c.view.pods[uid] == nil {
				in.Absent = append(in.Absent, uid)
			}
		}
	}
	return in
}

// pass is one pass of the controller, in the order of the plan's fields. It says whether it wrote anything.
func (c *cluster) pass() bool {
	if c.view.seenJob < c.awaitJob || c.view.seenPods < c.awaitPods {
		return false
	}
	in := c.input()
	plan := Decide(in)
	c.note("pass at %s: %s", c.view.job.ResourceVersion, describe(in, plan))
	checkPlan(c, in, plan)
	if plan.Reason == ReasonOwners {
		return c.adopt(plan.Adopt)
	}
	wrote := plan.WriteStatus && c.confirms(plan)
	if plan.WriteStatus && !c.writeStatus(plan) {
		return wrote
	}
	for _, effect := range c.effects(in, plan) {
		if c.dies() || !effect() {
			return true
		}
		wrote = true
		if c.dies() {
			return true
		}
	}
	return wrote
}

// effects are what follows the status, one write each. One that returns false has met a newer state.
func (c *cluster) effects(in Input, plan Plan) []func() bool {
	var effects []func() bool
	for _, pod := range plan.Untrack {
		effects = append(effects, func() bool { c.untrack(pod); return true })
	}
	for _, pod := range plan.Remove {
		effects = append(effects, func() bool { return c.remove(pod) })
	}
	for _, pod := range slices.Concat(plan.Remove, plan.End) {
		effects = append(effects, func() bool { c.delete(pod.UID); return true })
	}
	alike := prototype(in.Job)
	for _, creation := range plan.Create {
		effects = append(effects, func() bool { c.create(podOf(in.Job, alike, creation)); return true })
	}
	return effects
}

// confirms asks as Controller.confirm does.
func (c *cluster) confirms(plan Plan) bool {
	old := len(plan.Vanished) > 0
	for _, pod := range plan.Recorded {
		version, _ := strconv.Atoi(pod.ResourceVersion)
		old = old || version < c.since
	}
	tracked := map[types.UID]bool{}
	for uid, pod := range c.pods {
		tracked[uid] = isTracked(pod)
	}
	return !old || plan.agrees(tracked)
}

// writeStatus writes it provided that nobody did since. It says whether the pass goes on.
func (c *cluster) writeStatus(plan Plan) bool {
	if !c.confirms(plan) || c.view.job.ResourceVersion != c.job.ResourceVersion || c.dies() {
		return false
	}
	job := c.job.DeepCopy()
	job.Status = *plan.Status.DeepCopy()
	c.putJob(job)
	c.awaitJob, c.written = c.version, c.now
	return !c.dies()
}

func (c *cluster) untrack(seen *corev1.Pod) {
	pod := c.pods[seen.UID]
	if pod == nil || !isTracked(pod) {
		return
	}
	if podview.IsTerminal(pod) || podview.IsTerminating(pod) {
		if c.due[pod.UID] != nil {
			c.fail("Pod %s is let go twice", pod.UID)
		}
		c.due[pod.UID] = pod
	}
	c.put(withoutTracking(pod))
	c.awaitPods = c.version
}

// remove takes the finalizer off a Pod that is not wanted, provided that it is as it was seen.
func (c *cluster) remove(seen *corev1.Pod) bool {
	pod := c.pods[seen.UID]
	if pod == nil || pod.ResourceVersion != seen.ResourceVersion {
		return pod == nil
	}
	if podview.IsTerminal(pod) {
		c.fail("Pod %s has ended, and nobody will count it", pod.UID)
	}
	c.put(withoutTracking(pod))
	c.awaitPods = c.version
	return true
}

func withoutTracking(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Finalizers = nil
	return pod
}

func (c *cluster) adopt(pods []*corev1.Pod) bool {
	for _, seen := range pods {
		if c.dies() {
			return true
		}
		if pod := c.pods[seen.UID]; pod != nil && !podview.IsTerminating(pod) {
			pod = pod.DeepCopy()
			pod.Finalizers = []string{tracking}
			c.put(pod)
			c.awaitPods = c.version
		}
	}
	return true
}

func (c *cluster) delete(uid types.UID) {
	if pod := c.pods[uid]; pod != nil && pod.DeletionTimestamp == nil {
		pod = pod.DeepCopy()
		pod.DeletionTimestamp = ptrTo(metav1.NewTime(c.now))
		c.put(pod)
		c.awaitPods = c.version
	}
}

func (c *cluster) create(pod *corev1.Pod) {
	made := pod.DeepCopy()
	made.UID = types.UID(fmt.Sprintf("%s%d", pod.GenerateName, c.version))
	made.Name, made.CreationTimestamp = string(made.UID), metav1.NewTime(c.now)
	made.Status.Phase = corev1.PodPending
	c.put(made)
	c.awaitPods = c.version
}

// live moves one Pod on: it starts, and ends well or badly. One that is being deleted ends.
func (c *cluster) live(uid types.UID) {
	pod := c.pods[uid].DeepCopy()
	end := func(phase corev1.PodPhase) {
		pod.Status.Phase = phase
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(c.now), ExitCode: int32(
				c.random.IntN(3))}}}}
	}
	switch n := c.random.IntN(10); {
	case podview.IsTerminal(pod):
		return
	case pod.Status.Phase == corev1.PodPending && !podview.IsTerminating(pod):
		pod.Status.Phase = corev1.PodRunning
	case c.script != nil && !podview.IsTerminating(pod):
		end(c.script(pod))
	case c.mortal && (n < 2 || podview.IsTerminating(pod) && n < 8):
		end(corev1.PodFailed)
	case n < 6 || podview.IsTerminating(pod):
		end(corev1.PodSucceeded)
	default:
		return
	}
	c.note("%s is %s", uid, pod.Status.Phase)
	c.put(pod)
}

// step lets one thing happen.
func (c *cluster) step() {
	c.now = c.now.Add(time.Duration(c.random.IntN(4000)) * time.Millisecond)
	switch pods := slices.Sorted(maps.Keys(c.pods)); {
	case c.random.IntN(3) == 0:
		c.pass()
	case c.random.IntN(3) > 0:
		[]*view{c.view, c.standby}[c.random.IntN(2)].hearOne(c.random.IntN(2) == 0)
	case len(pods) > 0:
		c.live(pods[c.random.IntN(len(pods))])
	}
}

// settle lets everything happen, without crashes, until nothing does any more.
func (c *cluster) settle() {
	c.crashes = 0
	for round, quiet := 0, 0; quiet < 20; round++ {
		c.now = c.now.Add(7 * time.Minute)
		version := c.version
		for _, uid := range slices.Sorted(maps.Keys(c.pods)) {
			c.live(uid)
		}
		c.hear()
		c.pass()
		quiet++
		if c.version != version {
			quiet = 0
		}
		if round > 3000 {
			c.fail("it does not come to rest")
		}
	}
}
