package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:generate go run ./cmd/dashboards ../helm/keelson/charts/monitoring/dashboards

// Dashboard is one page of Grafana.
type Dashboard struct {
	// Name is that of the file and, in Grafana, of the address.
	Name, Title string
	Rows        []Row
}

// Row is a headline and the panels below it, two side by side.
type Row struct {
	Title  string
	Panels []Panel
}

// Panel shows how something went over time.
type Panel struct {
	Title, Unit string
	Queries     []Query
}

// Query is a line of a panel, or one for each value of the labels that its legend names as {{label}}.
type Query struct{ Expr, Legend string }

// The units are Grafana's.
const (
	unitSeconds   = "s"
	unitBytes     = "bytes"
	unitPerSecond = "reqps"
	unitShare     = "percentunit"
	unitCount     = "short"
)

// The size of a panel, of the 24 columns of a page.
const panelWidth, panelHeight = 12, 8

// one is a panel's only query.
func one(expr, legend string) []Query { return []Query{{expr, legend}} }

// latencies are the median and the 99th percentile of a histogram, by one of its labels.
func latencies(histogram, label string) []Query {
	quantile := func(of string) Query {
		return Query{"histogram_quantile(0." + of + ", sum by (le, " + label + ") (rate(" + histogram +
			"[$__rate_interval])))", "{{" + label + "}} p" + of}
	}
	return []Query{quantile("50"), quantile("99")}
}

// Write writes each dashboard as DIR/NAME.json.
func Write(dir string) error {
	for _, d := range Dashboards {
		content, err := d.JSON()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, d.Name+".json"), content, 0o644); err != nil {
			return fmt.Errorf("writing the dashboard %s: %w", d.Name, err)
		}
	}
	return nil
}

// JSON is the form in which Grafana reads it.
func (d Dashboard) JSON() ([]byte, error) {
	content, err := json.MarshalIndent(d.model(), "", " ")
	if err != nil {
		return nil, fmt.Errorf("writing the dashboard %s: %w", d.Name, err)
	}
	// What Grafana writes itself is not escaped for HTML either.
	content = []byte(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(content)))
	return append(content, '\n'), nil
}

type object = map[string]any

// model is Grafana's, without what it fills in itself.
func (d Dashboard) model() object {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	panels, id, y := []object{}, 0, 0
	next := func(p object, x, width, height int) {
		id++
		p["id"], p["gridPos"] = id, object{"x": x, "y": y, "w": width, "h": height}
		panels = append(panels, p)
	}
	for _, row := range d.Rows {
		next(object{"type": "row", "title": row.Title}, 0, 2*panelWidth, 1)
		y++
		for i, panel := range row.Panels {
			next(object{"type": "timeseries", "title": panel.Title, "datasource": source,
				"fieldConfig": object{"defaults": object{"unit": panel.Unit, "min": 0}},
				"targets":     panel.targets(source)}, i%2*panelWidth, panelWidth, panelHeight)
			if i%2 == 1 || i == len(row.Panels)-1 {
				y += panelHeight
			}
		}
	}
	return object{
		"uid": "keelson-" + d.Name, "title": "Keelson / " + d.Title, "tags": []string{"keelson"}, "schemaVersion": 39,
		"refresh": "30s", "time": object{"from": "now-1h", "to": "now"}, "panels": panels,
		"templating": object{"list": []object{{"name": "datasource", "type": "datasource", "query": "prometheus"}}},
	}
}

func (p Panel) targets(source object) (all []object) {
	for i, query := range p.Queries {
		all = append(all, object{"refId": string(rune('A' + i)), "datasource": source, "expr": query.Expr,
			"legendFormat": query.Legend})
	}
	return all
}
