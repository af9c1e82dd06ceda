package view

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/cli/internal/terminal"
	"keelson.dev/kit/podview"
	introspectionv1 "keelson.dev/proto/keelson/introspection/v1"
)

// Account holds what is known about one Pod.
type Account struct {
	Pod    *corev1.Pod
	Events []corev1.Event
	// Views are the answers of the daemons that decide about the Pod, the scheduler's first.
	Views []DaemonView
}

// DaemonView is one daemon's answer.
type DaemonView struct {
	Daemon  string
	Summary string
	Facts   []*introspectionv1.Fact
}

// ExplainPod asks the API, the scheduler, the Pod's nodeagent, the controllers that make its claims and bind them
// to volumes, and those that remove Pods.
func ExplainPod(ctx context.Context, m *mesh.Mesh, namespace, name string) (Account, error) {
	client, err := m.Client()
	if err != nil {
		return Account{}, err
	}
	pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Account{}, missing(ctx, client, "Pod", namespace, name)
	}
	if err != nil {
		return Account{}, fmt.Errorf("reading the Pod: %w", err)
	}
	account := Account{Pod: pod}
	if account.Events, err = eventsOf(ctx, client, pod); err != nil {
		return account, err
	}
	object := &introspectionv1.ObjectReference{ApiVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name}
	account.Views = append(account.Views, ask(ctx, m, plan.Scheduler, object, account.unknownToScheduler()))
	if agent := plan.NodeagentProcess(pod.Spec.NodeName); pod.Spec.NodeName != "" {
		account.Views = append(account.Views, ask(ctx, m, agent, object, account.unknownToAgent()))
	}
	if hasOwnClaims(pod) || isAnnounced(pod) {
		account.Views = append(account.Views, ask(ctx, m, plan.WorkloadControllers, object, "has not seen the Pod yet"))
	}
	for _, claim := range unboundClaims(ctx, client, pod) {
		about := &introspectionv1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: namespace, Name: claim}
		view := ask(ctx, m, plan.WorkloadControllers, about, "has not seen the claim yet")
		view.Daemon += ", on PersistentVolumeClaim " + claim
		account.Views = append(account.Views, view)
	}
	account.Views = append(account.Views, ask(ctx, m, plan.PodGC, object, "has not seen the Pod yet"),
		askOwners(ctx, m, pod))
	return account, nil
}

// unboundClaims returns the claims that a Pod waits for: they exist and have no volume. It includes claims that
// cannot be read; their explanation reports the error.
func unboundClaims(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) (names []string) {
	if ended(pod) {
		return nil
	}
	for _, name := range podview.ClaimNames(pod) {
		claim, err := client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		gone := apierrors.IsNotFound(err) // which the scheduler reports
		if !gone && (err != nil || claim.Status.Phase != corev1.ClaimBound) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// hasOwnClaims reports whether controllers make claims for the Pod.
func hasOwnClaims(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil })
}

// isAnnounced reports whether the Pod's status announces its removal.
func isAnnounced(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

// eventsOf returns the Events about an object, oldest first.
func eventsOf(ctx context.Context, client kubernetes.Interface, object metav1.Object) ([]corev1.Event, error) {
	selector := fields.Set{"involvedObject.uid": string(object.GetUID())}.AsSelector().String()
	events, err := client.CoreV1().Events(object.GetNamespace()).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("reading the Events about %s: %w", object.GetName(), err)
	}
	slices.SortStableFunc(events.Items, func(a, b corev1.Event) int {
		return cmp.Compare(LastSeen(a).Unix(), LastSeen(b).Unix())
	})
	return events.Items, nil
}

// unknownToScheduler returns why the scheduler knows nothing about the Pod: it only keeps Pods that it still has
// to place.
func (a Account) unknownToScheduler() string {
	switch {
	case a.Pod.Spec.NodeName != "":
		return a.binding()
	case ended(a.Pod):
		return "does not place a Pod that has ended"
	case a.Pod.DeletionTimestamp != nil:
		return "does not place a Pod that is being deleted"
	}
	return fmt.Sprintf("has no profile named %q, or has not seen the Pod yet", a.Pod.Spec.SchedulerName)
}

// binding says to which node the Pod was bound, and when and by which client if the API still knows.
func (a Account) binding() string {
	text := "bound to " + a.Pod.Spec.NodeName
	for _, condition := range a.Pod.Status.Conditions {
		at, holds := condition.LastTransitionTime, condition.Status == corev1.ConditionTrue
		if condition.Type == corev1.PodScheduled && holds && !at.IsZero() {
			text += " at " + at.Local().Format(time.DateTime)
		}
	}
	for _, event := range a.Events {
		if by := cmp.Or(event.ReportingController, event.Source.Component); event.Reason == "Scheduled" && by != "" {
			return text + " by " + by
		}
	}
	return text
}

// unknownToAgent returns why the Pod's nodeagent knows nothing about it.
func (a Account) unknownToAgent() string {
	if ended(a.Pod) {
		return "has nothing left to do for a Pod that has ended"
	}
	return "has not seen the Pod yet"
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// ask returns the daemon's answer, or the given one if it knows nothing about the object.
func ask(ctx context.Context, m *mesh.Mesh, daemon string, object *introspectionv1.ObjectReference, unknown string,
) DaemonView {
	view := DaemonView{Daemon: daemon}
	if !m.Has(daemon) {
		view.Summary = "is not part of this data directory"
		return view
	}
	client, closeConn, err := m.Introspection(daemon)
	if err != nil {
		view.Summary = err.Error()
		return view
	}
	defer func() { _ = closeConn() }()
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	answer, err := client.Explain(ctx, &introspectionv1.ExplainRequest{Object: object})
	switch {
	case status.Code(err) == codes.NotFound:
		view.Summary = unknown
	case err != nil:
		view.Summary = "does not answer: " + status.Convert(err).Message()
	default:
		view.Summary, view.Facts = answer.GetSummary(), answer.GetFacts()
	}
	return view
}

// LastSeen returns when an Event last happened, from the time field that is set.
func LastSeen(e corev1.Event) time.Time {
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time, e.FirstTimestamp.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return e.CreationTimestamp.Time
}

// Write prints the account.
func (a Account) Write(out io.Writer) {
	where := "no node yet"
	if a.Pod.Spec.NodeName != "" {
		where = "node " + a.Pod.Spec.NodeName
	}
	fmt.Fprintf(out, "Pod %s/%s: %s, %s\n", a.Pod.Namespace, a.Pod.Name, phase(a.Pod), where)
	for _, condition := range a.Pod.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			fmt.Fprintf(out, "  %s is %s%s\n", condition.Type, condition.Status,
				because(condition.Reason, condition.Message))
		}
	}
	for _, container := range slices.Concat(a.Pod.Status.InitContainerStatuses, a.Pod.Status.ContainerStatuses) {
		fmt.Fprintf(out, "  container %s: %s, restarted %d times\n", container.Name, containerState(container.State),
			container.RestartCount)
	}
	writeViews(out, a.Views)
	writeEvents(out, a.Events)
}

func writeViews(out io.Writer, views []DaemonView) {
	for _, view := range views {
		fmt.Fprintf(out, "\n%s: %s\n", view.Daemon, terminal.Line(view.Summary))
		for _, fact := range view.Facts {
			fmt.Fprintf(out, "  %s  %s\n", clock(fact.GetTime()),
				terminal.Line(fact.GetReason()+": "+fact.GetMessage()))
		}
	}
}

func writeEvents(out io.Writer, events []corev1.Event) {
	if len(events) > 0 {
		fmt.Fprintln(out, "\nEvents:")
	}
	for _, event := range events {
		fmt.Fprintf(out, "  %s  %s\n", LastSeen(event).Local().Format(time.TimeOnly),
			terminal.Line(event.Type+" "+event.Reason+": "+event.Message))
	}
}

// clock returns the time of day, or as many spaces for a fact without a time.
func clock(t *timestamppb.Timestamp) string {
	if t == nil || t.AsTime().IsZero() {
		return strings.Repeat(" ", len(time.TimeOnly))
	}
	return t.AsTime().Local().Format(time.TimeOnly)
}

func phase(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "being deleted (" + string(pod.Status.Phase) + ")"
	}
	return string(pod.Status.Phase)
}

func containerState(state corev1.ContainerState) string {
	switch {
	case state.Running != nil:
		return "running since " + state.Running.StartedAt.Local().Format(time.TimeOnly)
	case state.Terminated != nil:
		return fmt.Sprintf("ended with status %d%s", state.Terminated.ExitCode, because(state.Terminated.Reason,
			state.Terminated.Message))
	case state.Waiting != nil:
		return "waiting" + because(state.Waiting.Reason, state.Waiting.Message)
	}
	return "not started"
}

func because(reason, message string) string {
	text := strings.TrimSuffix(strings.Join([]string{reason, message}, ": "), ": ")
	if text = strings.TrimPrefix(text, ": "); text == "" {
		return ""
	}
	return " (" + terminal.Line(text) + ")"
}
