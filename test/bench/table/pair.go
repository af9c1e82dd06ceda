package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// compare prints every figure of two files of output, which may each hold several runs, and writes those that the page
// has to it.
func compare(out io.Writer, name, baseFile, workFile, page string) error {
	base, _, err := readFile(baseFile)
	if err != nil {
		return err
	}
	work, cpu, err := readFile(workFile)
	if err != nil {
		return err
	}
	if err := pair(out, base, work); err != nil {
		return err
	}
	return section{"Change since ", name, changes(name, cpu, base, work)}.writeTo(page)
}

// changes renders the rows of the page that both sides measured.
func changes(name, cpu string, base, work figures) string {
	var table strings.Builder
	fmt.Fprintf(&table, `What `+"`make bench-pair`"+` measured on %s, in turns. "Apart" is how many times its
least each side's own greatest figure is: a change within it says nothing.

| what | %s | now | ratio | apart |
|---|--:|--:|--:|--:|
`, machine(cpu), name)
	for _, r := range rows {
		if base[r.key] == nil || work[r.key] == nil {
			continue
		}
		before, after := mean(base[r.key]), mean(work[r.key])
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s, %s |\n", r.what, format(before), format(after),
			ratio(after, before), apart(base[r.key]), apart(work[r.key]))
	}
	return table.String()
}

func readFile(name string) (measured figures, cpu string, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	return read(file)
}

// pair prints the means, how many times the base's the work tree's is, and how far each side's runs lie apart: a ratio
// within that says nothing.
func pair(out io.Writer, base, work figures) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "base\twork\tratio\tof base's runs\tof work's\t  figure")
	for _, key := range slices.Sorted(maps.Keys(base)) {
		if _, ok := work[key]; !ok || strings.HasSuffix(key, " ns/op") {
			continue
		}
		before, after := mean(base[key]), mean(work[key])
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t  %s\n", format(before), format(after), ratio(after, before),
			apart(base[key]), apart(work[key]), key)
	}
	return table.Flush()
}

// apart is how many times the least of the values the greatest is.
func apart(values []float64) string { return ratio(slices.Max(values), slices.Min(values)) }

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func ratio(value, of float64) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", value/of)
}
