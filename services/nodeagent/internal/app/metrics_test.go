package app

import (
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"keelson.dev/services/nodeagent/internal/lifecycle"
	"keelson.dev/services/nodeagent/internal/observed"
)

// How containers ended is counted under the name with and without a prefix.
func TestTerminations(t *testing.T) {
	ended := newTerminations()
	registry := prometheus.NewRegistry()
	registry.MustRegister(ended.named, ended.bare)
	for kind, c := range map[lifecycle.Kind]observed.Container{
		lifecycle.Main: {ExitCode: 139, Reason: "Error"}, lifecycle.Init: {Reason: "Completed"},
		lifecycle.Sidecar: {Reason: "Completed"}, lifecycle.Ephemeral: {ExitCode: 1, Reason: "Error"},
	} {
		ended.count(kind, &c)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			line := family.GetName()
			for _, label := range metric.GetLabel() {
				line += " " + label.GetName() + "=" + label.GetValue()
			}
			got = append(got, fmt.Sprint(line, " ", metric.GetCounter().GetValue()))
		}
	}
	var want []string
	for _, name := range []string{"kubelet_terminated_containers_total", "terminated_containers_total"} {
		want = append(want, name+" container_type=container exit_code=139 reason=Error 1",
			name+" container_type=ephemeral_container exit_code=1 reason=Error 1",
			name+" container_type=init_container exit_code=0 reason=Completed 2")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
