package pod

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/registry/table"
	"keelson.dev/services/apiserver/internal/resource"
)

// line is a Pod with its summary, which several cells show.
type line struct {
	*corev1.Pod
	summary
}

var (
	statusHelp = corev1.PodStatus{}.SwaggerDoc()
	specHelp   = corev1.PodSpec{}.SwaggerDoc()
)

// columns are what kubectl get pods prints.
var columns = podColumns()

func podColumns() resource.Columns[*corev1.Pod] {
	c := resource.NewColumnsOf(func(p *corev1.Pod) line { return line{p, summarize(p)} },
		resource.NameColumn[line](),
		resource.Column("Ready", "string", "The aggregate readiness state of this pod for accepting traffic.",
			func(l line) any { return fmt.Sprintf("%d/%d", l.ready, l.containers) }),
		resource.Column("Status", "string", "The aggregate status of the containers in this pod.",
			func(l line) any { return l.reason }),
		restartsColumn,
		resource.AgeColumn[line](),
		resource.Column("IP", "string", statusHelp["podIP"],
			func(l line) any { return orNone(podIP(&l.Pod.Status)) }).Wide(),
		resource.Column("Node", "string",
			specHelp["nodeName"], func(l line) any { return orNone(l.Spec.NodeName) }).Wide(),
		resource.Column("Nominated Node", "string", statusHelp["nominatedNodeName"],
			func(l line) any { return orNone(l.Pod.Status.NominatedNodeName) }).Wide(),
		resource.Column("Readiness Gates", "string", specHelp["readinessGates"],
			func(l line) any { return readinessGatesCell(l.Pod) }).Wide(),
	)
	c.Conditions = rowConditions
	return c
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

// restartsColumn shows when the last restart was, too.
var restartsColumn = resource.TableColumn[line]{
	Heading: metav1.TableColumnDefinition{Name: "Restarts", Type: "string", Description: "The number of times the" +
		" containers in this pod have been restarted and when the last container in this pod has restarted."},
	Cell: func(l line, now time.Time) any {
		cell := strconv.Itoa(int(l.restarts))
		if l.restarts > 0 && !l.lastRestart.IsZero() {
			cell += fmt.Sprintf(" (%s ago)", resource.Age(l.lastRestart, now))
		}
		return cell
	},
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
