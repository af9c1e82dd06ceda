// Command table reads the output of the benchmarks on standard input, passes it on, and writes it as the table of
// docs/benchmarks.md, with the target beside each figure. With two files of such output, of a base and of the work
// tree, it prints the figures of both beside each other, and writes what changed to the page.
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
)

func main() {
	out := flag.String("out", "", "page to write to; nothing is written without it")
	base := flag.String("base", "the base", "what the first file measured, for the page")
	flag.Parse()
	work := func() error { return run(os.Stdin, os.Stdout, *out) }
	if flag.NArg() == 2 {
		work = func() error { return compare(os.Stdout, *base, flag.Arg(0), flag.Arg(1), *out) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, echo io.Writer, out string) error {
	measured, cpu, err := read(io.TeeReader(in, echo))
	if err != nil {
		return err
	}
	var table bytes.Buffer
	missing := write(&table, cpu, measured)
	fmt.Fprintln(echo)
	if _, err := echo.Write(table.Bytes()); err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("no figure for %s; the file is left as it was", strings.Join(missing, ", "))
	}
	return section{title: "Figures", content: table.String()}.writeTo(out)
}

// figures holds what each run measured, by "Benchmark metric" keys.
type figures map[string][]float64

// read returns the figures and the name of the processor that gave them.
func read(in io.Reader) (measured figures, cpu string, err error) {
	measured = figures{}
	reader := benchfmt.NewReader(in, "benchmarks")
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		cpu = result.GetConfig("cpu")
		name := strings.TrimSuffix(string(result.Name), fmt.Sprintf("-%d", runtime.GOMAXPROCS(0)))
		for _, value := range result.Values {
			unit, figure := value.Unit, value.Value
			if value.OrigUnit != "" {
				unit, figure = value.OrigUnit, value.OrigValue
			}
			measured[name+" "+unit] = append(measured[name+" "+unit], figure)
		}
	}
	return measured, cpu, reader.Err()
}

// write renders the figures and returns the rows that have none.
func write(page io.Writer, cpu string, measured figures) (missing []string) {
	fmt.Fprintf(page, `What `+"`make bench`"+` measured on %s. "Target" is what Keelson is built for.

| what | figure | target |
|---|--:|--:|
`, machine(cpu))
	for _, r := range rows {
		figure, ok := measured.of(r.key)
		if !ok {
			missing = append(missing, r.key)
			continue
		}
		fmt.Fprintf(page, "| %s | %s | %s |\n", r.what, format(figure), cmp.Or(r.target, "-"))
	}
	return missing
}

// of returns the figure of a row's key; false where there is none.
func (f figures) of(key string) (float64, bool) {
	key, divisor, isRatio := strings.Cut(key, " / ")
	values, ok := f[key]
	if !ok || !isRatio {
		return mean(values), ok
	}
	by, ok := f[divisor]
	if !ok || mean(by) == 0 {
		return 0, false
	}
	return mean(values) / mean(by), true
}

// machine returns the date of the measurement and a description of the machine.
func machine(cpu string) string {
	return fmt.Sprintf("%s, on %d cores (%s/%s, %s)", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(),
		runtime.GOOS, runtime.GOARCH, cpu)
}

func format(value float64) string {
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	default:
		return fmt.Sprintf("%.2f", value)
	}
}
