// Package metricspage reads the page that lists the daemons' metrics, and compares with it what daemons show, for tests
// of both.
//
// A section of the page holds a table with a row for each family: its name, its type and its labels. A name that ends
// with * stands for all that begin so and have no row of their own; a mark after the name says that the family is there
// only once something has happened.
package metricspage

import (
	"fmt"
	"os"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// mark follows the names of families that are there only once something has happened.
const mark = " †"

// row is what the page says of a family.
type row struct {
	name, kind, labels string
	later              bool
}

// Compare returns what is wrong with a section of the page, given the families that a daemon shows: those that are not
// on it, those that are not there, and those of another type or with other labels.
func Compare(file, section string, families []*dto.MetricFamily) ([]string, error) {
	page, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the page of metrics: %w", err)
	}
	rows := parse(string(page), section)
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s has no table under %q", file, section)
	}
	return compare(rows, families), nil
}

func compare(rows []row, families []*dto.MetricFamily) (wrong []string) {
	seen := map[string]bool{}
	for _, family := range families {
		shown := rowOf(family)
		i := slices.IndexFunc(rows, func(r row) bool { return r.name == shown.name })
		if i < 0 {
			i = slices.IndexFunc(rows, func(r row) bool { return r.names(shown.name) })
		}
		if i < 0 {
			wrong = append(wrong, "not on the page: "+shown.String())
			continue
		}
		seen[rows[i].name] = true
		if is := rows[i]; !strings.HasSuffix(is.name, "*") && (is.kind != shown.kind || is.labels != shown.labels) {
			wrong = append(wrong, "the page says "+is.String()+", it is "+shown.String())
		}
	}
	for _, r := range rows {
		if !seen[r.name] && !r.later {
			wrong = append(wrong, "not there: "+r.String())
		}
	}
	return wrong
}

// rowOf is what the page has to say of a family.
func rowOf(family *dto.MetricFamily) row {
	labels := map[string]bool{}
	for _, metric := range family.GetMetric() {
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = true
		}
	}
	names := make([]string, 0, len(labels))
	for name := range labels {
		names = append(names, name)
	}
	slices.Sort(names)
	return row{name: family.GetName(), kind: strings.ToLower(family.GetType().String()),
		labels: strings.Join(names, " ")}
}

func (r row) String() string { return fmt.Sprintf("| `%s` | %s | %s |", r.name, r.kind, r.labels) }

// names reports whether the row stands for all families that begin like this one.
func (r row) names(family string) bool {
	prefix, open := strings.CutSuffix(r.name, "*")
	return open && strings.HasPrefix(family, prefix)
}

// Family is what the page says of one.
type Family struct {
	Name, Type string
	Labels     []string
}

// Families returns what a page lists under all its headings; rows that stand for several families are left out. A name
// is there once for each table that has it.
func Families(file string) ([]Family, error) {
	page, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the page of metrics: %w", err)
	}
	var all []Family
	for _, r := range parse(string(page), everywhere) {
		if !strings.HasSuffix(r.name, "*") {
			all = append(all, Family{Name: r.name, Type: r.kind, Labels: strings.Fields(r.labels)})
		}
	}
	return all, nil
}

// everywhere has parse read all tables of a page.
const everywhere = ""

// parse reads the tables between the section's heading and the next one.
func parse(page, section string) (rows []row) {
	within := section == everywhere
	for _, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(line, "#") {
			within = section == everywhere || strings.TrimSpace(strings.TrimLeft(line, "#")) == section
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !within || !strings.HasPrefix(line, "| `") || len(cells) < 3 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		name, later := strings.CutSuffix(cells[0], mark)
		rows = append(rows, row{name: strings.Trim(name, "`"), kind: cells[1], labels: cells[2], later: later})
	}
	return rows
}
