package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

// The tables under testdata: POD-104 POD-153 POD-214 POD-215 POD-216 POD-226 SAF-075 SAF-194 DEP-037.
func TestColumns(t *testing.T) {
	tabletest.Golden(t, Resource)
}

func TestRowConditions(t *testing.T) {
	rows := map[corev1.PodPhase]string{
		corev1.PodSucceeded: "The pod has completed successfully.", corev1.PodFailed: "The pod failed.",
		corev1.PodRunning: "", corev1.PodPending: "",
	}
	for phase, message := range rows {
		got := rowConditions(&corev1.Pod{Status: corev1.PodStatus{Phase: phase}})
		if message == "" {
			if len(got) > 0 {
				t.Errorf("%s: %v", phase, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Type != metav1.RowCompleted || got[0].Reason != string(phase) ||
			got[0].Message != message {
			t.Errorf("%s: %v", phase, got)
		}
	}
}
