package app

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/services/scheduler/internal/bind"
	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/queue"
	"keelson.dev/services/scheduler/internal/rules"
)

// metrics are what the daemon shows on /metrics. All but depth and moved are in the loop's way: what they count is
// found before.
type metrics struct {
	placed, unplaced prometheus.Counter
	deciding         prometheus.Histogram
	taken, refused   prometheus.Counter
	binding          prometheus.Histogram
	waiting          *prometheus.GaugeVec
	preemptions      *prometheus.CounterVec
	victims          prometheus.Counter

	profiles map[string]tries
	// waited is by the number of attempts, waits is what of it there is, by that number.
	waited           *prometheus.HistogramVec
	waits            [manyAttempts + 1]prometheus.Observer
	attempts, chosen prometheus.Histogram
	considered       prometheus.Counter
	incoming         *prometheus.CounterVec
	// moves are those that incoming has counted.
	moves map[queue.Move]uint64
}

// tries are those of a profile's Pods by what they come to.
type tries struct{ scheduled, unschedulable, failed outcome }

// outcome is what tries come to.
type outcome struct {
	count prometheus.Counter
	took  prometheus.Observer
}

func (o outcome) observe(took time.Duration) {
	o.count.Inc()
	o.took.Observe(took.Seconds())
}

func newMetrics(registry prometheus.Registerer, profiles []rules.Profile) *metrics {
	m := &metrics{moves: map[queue.Move]uint64{}, profiles: make(map[string]tries, len(profiles))}
	m.registerOwn(registry)
	m.registerNamed(registry, profiles)
	return m
}

// registerOwn registers what has names of this scheduler.
func (m *metrics) registerOwn(registry prometheus.Registerer) {
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "scheduler_decisions_total", Help: "Tries to find a node for a Pod, by result."}, []string{"result"})
	m.placed, m.unplaced = decisions.WithLabelValues("placed"), decisions.WithLabelValues("unschedulable")
	m.deciding = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "scheduler_decision_duration_seconds", Help: "Time to find a node for a Pod.",
		Buckets: prometheus.ExponentialBuckets(1e-6, 4, 10)})
	bindings := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "scheduler_bindings_total", Help: "Bindings written, by result."}, []string{"result"})
	m.taken, m.refused = bindings.WithLabelValues("bound"), bindings.WithLabelValues("failed")
	m.binding = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "scheduler_binding_duration_seconds", Help: "Time from a decision to the API server's answer.",
		Buckets: prometheus.ExponentialBuckets(1e-3, 2, 14)})
	m.preemptions = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "scheduler_preemptions_total",
		Help: "Preemptions carried out, by result."}, []string{"result"})
	m.victims = prometheus.NewCounter(prometheus.CounterOpts{Name: "scheduler_preemption_victims_total",
		Help: "Pods that were deleted to make room for others."})
	registry.MustRegister(decisions, m.deciding, bindings, m.binding, m.preemptions, m.victims)
	for _, result := range []string{"done", "failed"} {
		m.preemptions.WithLabelValues(result)
	}
}

// registerNamed registers what has the names, labels and buckets of kube-scheduler's.
func (m *metrics) registerNamed(registry prometheus.Registerer, profiles []rules.Profile) {
	labels, buckets := []string{"result", "profile"}, prometheus.ExponentialBuckets(0.001, 2, 15)
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "scheduler_schedule_attempts_total",
		Help: "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be " +
			"scheduled, while 'error' means an internal scheduler problem."}, labels)
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "scheduler_scheduling_attempt_duration_seconds",
		Help: "Scheduling attempt latency in seconds (scheduling algorithm + binding)", Buckets: buckets}, labels)
	for i := range profiles {
		of := func(result string) outcome {
			return outcome{attempts.WithLabelValues(result, profiles[i].Name),
				took.WithLabelValues(result, profiles[i].Name)}
		}
		m.profiles[profiles[i].Name] = tries{of("scheduled"), of("unschedulable"), of("error")}
	}
	m.waited = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "scheduler_pod_scheduling_sli_duration_seconds",
		Help: "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might " +
			"involve multiple scheduling attempts.", Buckets: prometheus.ExponentialBuckets(0.01, 2, 20)},
		[]string{"attempts"})
	m.attempts = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "scheduler_pod_scheduling_attempts",
		Help: "Number of attempts to successfully schedule a pod.", Buckets: prometheus.ExponentialBuckets(1, 2, 5)})
	m.considered = prometheus.NewCounter(prometheus.CounterOpts{Name: "scheduler_preemption_attempts_total",
		Help: "Total preemption attempts in the cluster till now"})
	m.chosen = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "scheduler_preemption_victims",
		Help: "Number of selected preemption victims", Buckets: prometheus.ExponentialBuckets(1, 2, 7)})
	m.waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "scheduler_pending_pods", Help: "Pods without a node, by the part of the queue."}, []string{"queue"})
	m.incoming = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "scheduler_queue_incoming_pods_total",
		Help: "Number of pods added to scheduling queues by event and queue type."}, []string{"queue", "event"})
	registry.MustRegister(attempts, took, m.waited, m.attempts, m.considered, m.chosen, m.waiting,
		m.incoming)
}

// decided counts a try, which has ended unless the Pod got a node.
func (m *metrics) decided(v *cycle.Verdict, took time.Duration) {
	m.deciding.Observe(took.Seconds())
	if v.Node != "" {
		m.placed.Inc()
		return
	}
	m.unplaced.Inc()
	of := m.profiles[cycle.SchedulerName(v.Pod)]
	if v.Failure != "" {
		of.failed.observe(took)
	} else {
		of.unschedulable.observe(took)
	}
	if v.Preemption != "" || v.Plan != nil {
		m.considered.Inc()
	}
}

// failed counts a try that ended between the decision and the binding.
func (m *metrics) failed(pod *corev1.Pod, took time.Duration) {
	m.profiles[cycle.SchedulerName(pod)].failed.observe(took)
}

// bound counts a binding, which ends a try.
func (m *metrics) bound(o bind.Outcome, now time.Time) {
	m.binding.Observe(now.Sub(o.Decided).Seconds())
	of, took := m.profiles[cycle.SchedulerName(o.Pod)], now.Sub(o.Try.Began)
	if o.Err != nil {
		m.refused.Inc()
		of.failed.observe(took)
		return
	}
	m.taken.Inc()
	of.scheduled.observe(took)
	m.attempts.Observe(float64(o.Try.Attempt))
	m.waitsOf(o.Try.Attempt).Observe(now.Sub(o.Try.Arrived).Seconds())
}

// waitsOf are the waits of Pods that were bound at that attempt.
func (m *metrics) waitsOf(attempt int) prometheus.Observer {
	i := min(attempt, manyAttempts)
	if m.waits[i] == nil {
		m.waits[i] = m.waited.WithLabelValues(attemptsLabel(attempt))
	}
	return m.waits[i]
}

// manyAttempts is the number of attempts from which on the metrics do not distinguish them.
const manyAttempts = 15

func attemptsLabel(n int) string {
	if n >= manyAttempts {
		return strconv.Itoa(manyAttempts) + "+"
	}
	return strconv.Itoa(n)
}

func (m *metrics) depth(place queue.Place, n int) {
	m.waiting.WithLabelValues(string(place)).Set(float64(n))
}

// moved takes in how often Pods and groups have come to a place so far.
func (m *metrics) moved(all map[queue.Move]uint64) {
	for move, n := range all {
		m.incoming.WithLabelValues(string(move.Place), move.Event).Add(float64(n - m.moves[move]))
		m.moves[move] = n
	}
}

// victimsChosen counts the victims of a preemption that is about to be carried out.
func (m *metrics) victimsChosen(n int) { m.chosen.Observe(float64(n)) }

func (m *metrics) preempted(victims int, ok bool) {
	result := "failed"
	if ok {
		result = "done"
	}
	m.preemptions.WithLabelValues(result).Inc()
	m.victims.Add(float64(victims))
}
