// Package extenderclient calls extenders. Each call is bounded in time and size; what it costs, only the Pod pays that
// it is about.
package extenderclient

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "k8s.io/client-go/kubernetes/typed/core/v1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"keelson.dev/kit/contained"
	"keelson.dev/services/scheduler/internal/bind"
	"keelson.dev/services/scheduler/internal/extender"
)

// Asker asks extenders in the background.
type Asker struct {
	extenders []schedulerv1.Extender
	clients   []*http.Client // by extender
	pods      v1.PodsGetter
	nodes     func(name string) *corev1.Node
	terms     *bind.Terms
	log       *zap.Logger
}

// New returns an Asker that reads whole Pods from the API server, as an extender may look at what no rule does; nodes
// returns a whole node, nil for one that is gone, and is not called where every extender keeps its own. The clients are
// those of Clients.
func New(extenders []schedulerv1.Extender, clients []*http.Client, pods v1.PodsGetter,
	nodes func(string) *corev1.Node, terms *bind.Terms, log *zap.Logger) *Asker {
	return &Asker{extenders: extenders, clients: clients, pods: pods, nodes: nodes, terms: terms, log: log}
}

// NeedsNodes reports whether an extender is sent whole nodes.
func NeedsNodes(extenders []schedulerv1.Extender) bool {
	return slices.ContainsFunc(extenders, func(e schedulerv1.Extender) bool {
		return !e.NodeCacheCapable && (e.FilterVerb != "" || e.PrioritizeVerb != "")
	})
}

// Ask starts to ask and returns at once. The answer is reported from any goroutine, also when ctx ends.
func (a *Asker) Ask(ctx context.Context, q *extender.Question, report func(extender.Answer)) {
	ctx = a.terms.Writing(ctx, q.Pod)
	contained.Go("asking extenders", func() { report(a.answer(ctx, q)) },
		func(err error) { report(extender.Answer{Err: err}) })
}

func (a *Asker) answer(ctx context.Context, q *extender.Question) extender.Answer {
	pod, err := a.whole(ctx, q.Pod)
	switch {
	case err != nil:
		return extender.Answer{Err: err}
	case q.Plans != nil:
		return a.plans(ctx, pod, q)
	}
	answer := a.filter(ctx, pod, q)
	if answer.Err == nil && len(answer.Left) > 0 {
		a.prioritize(ctx, pod, q, &answer)
	}
	return answer
}

// whole reads the Pod with all its fields.
func (a *Asker) whole(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	pod, err := a.pods.Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the Pod for its extenders: %w", err)
	}
	if pod.UID != p.UID {
		return nil, fmt.Errorf("reading the Pod for its extenders: its UID is %s by now, not %s", pod.UID, p.UID)
	}
	return pod, nil
}

// filter lets each extender take nodes out of those that the one before left.
func (a *Asker) filter(ctx context.Context, pod *corev1.Pod, q *extender.Question) extender.Answer {
	answer := extender.Answer{Left: q.Nodes, Scores: map[string]int64{}, Failed: map[string]string{}}
	for _, i := range q.Extenders {
		e := &a.extenders[i]
		if e.FilterVerb == "" || len(answer.Left) == 0 {
			continue
		}
		var result extenderv1.ExtenderFilterResult
		args, asked := a.args(e, pod, answer.Left)
		err := a.post(ctx, i, e.FilterVerb, args, &result)
		var left []string
		var failed map[string]string
		if err == nil {
			left, failed, err = extender.Filtered(&result, asked, e.NodeCacheCapable)
		}
		if err != nil {
			err = a.failure(i, "filter", err)
			if a.ignore(e.Ignorable, pod, err) {
				continue
			}
			return extender.Answer{Err: err}
		}
		answer.Left = left
		maps.Copy(answer.Failed, failed)
	}
	return answer
}

// prioritize adds up what the extenders think of the nodes. As the API says, one that gives no answer of use has no
// say.
func (a *Asker) prioritize(ctx context.Context, pod *corev1.Pod, q *extender.Question, answer *extender.Answer) {
	for _, i := range q.Extenders {
		e := &a.extenders[i]
		if e.PrioritizeVerb == "" {
			continue
		}
		var list extenderv1.HostPriorityList
		args, asked := a.args(e, pod, answer.Left)
		err := a.post(ctx, i, e.PrioritizeVerb, args, &list)
		if err == nil {
			err = extender.Scored(list, asked, e.Weight, answer.Scores)
		}
		if err != nil {
			a.ignore(true, pod, a.failure(i, "prioritize", err))
		}
	}
}

// plans lets each extender take plans out of those that the one before left, and change their victims.
func (a *Asker) plans(ctx context.Context, pod *corev1.Pod, q *extender.Question) extender.Answer {
	answer := extender.Answer{Plans: map[string][]types.UID{}}
	for name, victims := range q.Plans {
		answer.Plans[name] = uids(victims.Pods)
	}
	for _, i := range q.Extenders {
		e := &a.extenders[i]
		if e.PreemptVerb == "" || len(answer.Plans) == 0 {
			continue
		}
		asked := map[string]extender.Victims{}
		for name := range answer.Plans {
			asked[name] = q.Plans[name]
		}
		var result extenderv1.ExtenderPreemptionResult
		err := a.post(ctx, i, e.PreemptVerb, preemptionArgs(e, pod, asked, answer.Plans), &result)
		var left map[string][]types.UID
		if err == nil {
			left, err = extender.Spared(&result, asked)
		}
		if err != nil {
			err = a.failure(i, "preempt", err)
			if a.ignore(e.Ignorable, pod, err) {
				continue
			}
			return extender.Answer{Err: err}
		}
		answer.Plans = left
	}
	return answer
}

func uids(pods []*corev1.Pod) []types.UID {
	out := make([]types.UID, 0, len(pods))
	for _, p := range pods {
		out = append(out, p.UID)
	}
	return out
}

// args returns the arguments for an extender with the nodes, and which they are: one that is gone is left out.
func (a *Asker) args(e *schedulerv1.Extender, pod *corev1.Pod, names []string) (*extenderv1.ExtenderArgs, []string) {
	if e.NodeCacheCapable {
		return &extenderv1.ExtenderArgs{Pod: pod, NodeNames: &names}, names
	}
	list, asked := &corev1.NodeList{}, []string{}
	for _, name := range names {
		if n := a.nodes(name); n != nil {
			list.Items, asked = append(list.Items, *n), append(asked, name)
		}
	}
	return &extenderv1.ExtenderArgs{Pod: pod, Nodes: list}, asked
}

// preemptionArgs returns the arguments for an extender with the plans: the names of victims where it keeps its own
// picture of the cluster, and else what the scheduler knows of them.
func preemptionArgs(e *schedulerv1.Extender, pod *corev1.Pod, asked map[string]extender.Victims,
	now map[string][]types.UID) *extenderv1.ExtenderPreemptionArgs {
	args := &extenderv1.ExtenderPreemptionArgs{Pod: pod}
	if e.NodeCacheCapable {
		args.NodeNameToMetaVictims = map[string]*extenderv1.MetaVictims{}
	} else {
		args.NodeNameToVictims = map[string]*extenderv1.Victims{}
	}
	for name, victims := range asked {
		meta := &extenderv1.MetaVictims{NumPDBViolations: int64(victims.Violations)}
		full := &extenderv1.Victims{NumPDBViolations: meta.NumPDBViolations}
		for _, uid := range now[name] {
			meta.Pods = append(meta.Pods, &extenderv1.MetaPod{UID: string(uid)})
		}
		for _, p := range victims.Pods {
			if slices.Contains(now[name], p.UID) {
				full.Pods = append(full.Pods, p)
			}
		}
		if e.NodeCacheCapable {
			args.NodeNameToMetaVictims[name] = meta
		} else {
			args.NodeNameToVictims[name] = full
		}
	}
	return args
}

// ignore notes that the Pod goes on without an extender, where it does.
func (a *Asker) ignore(ignorable bool, pod *corev1.Pod, err error) bool {
	if ignorable {
		a.log.Warn("extender is left out", zap.String("pod", pod.Namespace+"/"+pod.Name), zap.Error(err))
	}
	return ignorable
}
