// Package monitoring holds what the alerts and dashboards of the chart's sub-chart monitoring are tested by, and makes
// the dashboards. No daemon links it: it is a module of its own, for it needs Prometheus's.
//
// The rules are in ../helm/keelson/charts/monitoring/rules, the dashboards beside them. Every metric and label that
// they name must be on docs/reference/metrics.md, which is itself compared with real daemons.
package monitoring

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// promQL is the language as Prometheus takes it without any of its experimental switches.
var promQL = parser.NewParser(parser.Options{})

// Rules are all rules of a folder's files, by the names of the files.
func Rules(dir string) (map[string][]rulefmt.Rule, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no rules", dir)
	}
	all := map[string][]rulefmt.Rule{}
	for _, file := range files {
		groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, promQL, slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			return nil, fmt.Errorf("reading %s: %w", file, errs[0])
		}
		for _, group := range groups.Groups {
			all[filepath.Base(file)] = append(all[filepath.Base(file)], group.Rules...)
		}
	}
	return all, nil
}
