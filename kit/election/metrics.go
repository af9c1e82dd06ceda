package election

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// leading has the name and the label of client-go's gauge, which goes on telling 1 where a Lease is handed over between
// two renewals.
var leading = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "leader_election_master_status",
	Help: "Whether this process leads the role whose Lease has the name: 1 while it does its work, else 0.",
}, []string{"name"})

// Metrics show for each role for which this process has stood whether it leads.
func Metrics() []prometheus.Collector { return []prometheus.Collector{leading} }

// shown is lead with the gauge at 1 meanwhile.
func shown(gauge prometheus.Gauge, lead func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		gauge.Set(1)
		defer gauge.Set(0)
		return lead(ctx)
	}
}
