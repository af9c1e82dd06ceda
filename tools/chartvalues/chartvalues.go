// Package chartvalues writes what can be set in a Helm chart into its README.md: each value with its default and with
// the comment that stands above it in values.yaml.
package chartvalues

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The tables stand between these lines.
const (
	begin = "<!-- values: written by `make generate` from the comments in values.yaml -->\n"
	end   = "<!-- end of values -->\n"
)

// Update returns the content of a chart's README.md with tables of what values.yaml and those of its sub-charts hold
// now, and what the file holds.
func Update(chart string) (updated, before string, err error) {
	content, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if err != nil {
		return "", "", fmt.Errorf("reading the chart's page: %w", err)
	}
	above, rest, opened := strings.Cut(string(content), begin)
	_, below, closed := strings.Cut(rest, end)
	if !opened || !closed {
		return "", "", fmt.Errorf("%s/README.md has no lines %q and %q", chart, strings.TrimSpace(begin),
			strings.TrimSpace(end))
	}
	tables, err := tables(chart)
	if err != nil {
		return "", "", err
	}
	return above + begin + tables + "\n" + end + below, string(content), nil
}

// tables are one for the chart itself, and one for each sub-chart that has values.
func tables(chart string) (string, error) {
	var out strings.Builder
	files, err := filepath.Glob(filepath.Join(chart, "charts", "*", "values.yaml"))
	if err != nil {
		return "", fmt.Errorf("listing sub-charts: %w", err)
	}
	for _, file := range append([]string{filepath.Join(chart, "values.yaml")}, files...) {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading values: %w", err)
		}
		name := ""
		if filepath.Dir(file) != filepath.Clean(chart) {
			name = filepath.Base(filepath.Dir(file))
		}
		table, err := table(name, content)
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", file, err)
		}
		out.WriteString(table)
	}
	return out.String(), nil
}

// table is that of one file, whose values are set below the name of its sub-chart.
func table(name string, content []byte) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return "", err
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return "", fmt.Errorf("it holds no values")
	}
	var out strings.Builder
	if name != "" {
		fmt.Fprintf(&out, "\n### %s\n", name)
	}
	if about := sentence(document.HeadComment); about != "" {
		fmt.Fprintf(&out, "\n%s\n", about[1:])
	}
	out.WriteString("\n| value | default | |\n|---|---|---|\n")
	rows, err := rows(name, document.Content[0])
	if err != nil {
		return "", err
	}
	return out.String() + rows, nil
}

// rows returns the rows of a mapping's values. A value that holds further values has a row if a comment describes
// all of them.
func rows(path string, mapping *yaml.Node) (string, error) {
	var out strings.Builder
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name, about := strings.TrimPrefix(path+"."+key.Value, "."), sentence(key.HeadComment)
		block := value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0
		if !block {
			shown, err := literal(value)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&out, "| `%s` | `%s` |%s |\n", name, shown, about)
			continue
		}
		if about != "" {
			fmt.Fprintf(&out, "| `%s` | |%s |\n", name, about)
		}
		below, err := rows(name, value)
		if err != nil {
			return "", err
		}
		out.WriteString(below)
	}
	return out.String(), nil
}

// literal is a value as the file writes it.
func literal(value *yaml.Node) (string, error) {
	bare := *value
	bare.HeadComment, bare.LineComment, bare.FootComment = "", "", ""
	text, err := yaml.Marshal(&bare)
	if err != nil {
		return "", fmt.Errorf("writing a default: %w", err)
	}
	return string(bytes.TrimSpace(text)), nil
}

// sentence is a comment on one line, as a cell of a table holds it: with a space in front, if there is one.
func sentence(comment string) (line string) {
	for text := range strings.Lines(comment) {
		for _, word := range strings.Fields(strings.TrimPrefix(text, "#")) {
			line += " " + word
		}
	}
	return strings.ReplaceAll(line, "|", `\|`)
}
