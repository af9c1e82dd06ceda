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

// compare prints every figure of two files of output, which may each hold several runs.
func compare(out io.Writer, baseFile, workFile string) error {
	base, err := readFile(baseFile)
	if err != nil {
		return err
	}
	work, err := readFile(workFile)
	if err != nil {
		return err
	}
	return pair(out, base, work)
}

func readFile(name string) (figures, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	measured, _, err := read(file)
	return measured, err
}

// pair prints the means, how many times the base's the work tree's is, and how far the base's runs lie apart: a ratio
// within that says nothing.
func pair(out io.Writer, base, work figures) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "base\twork\tratio\tof base's runs\t  figure")
	for _, key := range slices.Sorted(maps.Keys(base)) {
		if _, ok := work[key]; !ok || strings.HasSuffix(key, " ns/op") {
			continue
		}
		before, after := mean(base[key]), mean(work[key])
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t  %s\n", format(before), format(after), ratio(after, before),
			ratio(slices.Max(base[key]), slices.Min(base[key])), key)
	}
	return table.Flush()
}

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
