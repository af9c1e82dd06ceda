package pod

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/registry/table"
)

var columns = rest.Columns[*corev1.Pod]{
	Definitions: []metav1.TableColumnDefinition{
		rest.NameColumn(),
		rest.Column("Ready", "string", "The aggregate readiness state of this pod for accepting traffic."),
		rest.Column("Status", "string", "The aggregate status of the containers in this pod."),
		rest.Column("Restarts", "string", "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted."),
		rest.AgeColumn(),
		rest.WideColumn("IP", "string", corev1.PodStatus{}.SwaggerDoc()["podIP"]),
		rest.WideColumn("Node", "string", corev1.PodSpec{}.SwaggerDoc()["nodeName"]),
		rest.WideColumn("Nominated Node", "string", corev1.PodStatus{}.SwaggerDoc()["nominatedNodeName"]),
		rest.WideColumn("Readiness Gates", "string", corev1.PodSpec{}.SwaggerDoc()["readinessGates"]),
	},
	Row:        row,
	Conditions: rowConditions,
}

func row(p *corev1.Pod, now time.Time) []any {
	s := summarize(p)
	return []any{
		p.Name,
		fmt.Sprintf("%d/%d", s.ready, s.containers),
		s.reason,
		restartsCell(s.restarts, s.lastRestart, now),
		rest.Age(p.CreationTimestamp, now),
		orNone(podIP(&p.Status)),
		orNone(p.Spec.NodeName),
		orNone(p.Status.NominatedNodeName),
		readinessGatesCell(p),
	}
}

// rowConditions let clients hide Pods that have ended.
func rowConditions(p *corev1.Pod) []metav1.TableRowCondition {
	message := map[corev1.PodPhase]string{
		corev1.PodSucceeded: "The pod has completed successfully.",
		corev1.PodFailed:    "The pod failed.",
	}[p.Status.Phase]
	if message == "" {
		return nil
	}
	return []metav1.TableRowCondition{{
		Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: string(p.Status.Phase), Message: message,
	}}
}

func restartsCell(count int32, last metav1.Time, now time.Time) string {
	cell := strconv.Itoa(int(count))
	if count > 0 && !last.IsZero() {
		cell += fmt.Sprintf(" (%s ago)", rest.Age(last, now))
	}
	return cell
}

// readinessGatesCell counts the gates whose condition is true.
func readinessGatesCell(p *corev1.Pod) string {
	if len(p.Spec.ReadinessGates) == 0 {
		return table.None
	}
	open := 0
	for _, gate := range p.Spec.ReadinessGates {
		if hasCondition(&p.Status, gate.ConditionType) {
			open++
		}
	}
	return fmt.Sprintf("%d/%d", open, len(p.Spec.ReadinessGates))
}

func orNone(cell string) string {
	if cell == "" {
		return table.None
	}
	return cell
}

func hasCondition(status *corev1.PodStatus, kind corev1.PodConditionType) bool {
	for _, condition := range status.Conditions {
		if condition.Type == kind {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
