// Command table reads the output of the benchmarks on standard input, passes it on, and writes it as the table of
// docs/benchmarks.md, with the target and the usual control plane's figure beside each. With two files of such output
// it prints the figures of both beside each other.
package main

import (
	"bytes"
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
	out := flag.String("out", "", "file to write; nothing is written without it")
	flag.Parse()
	work := func() error { return run(os.Stdin, os.Stdout, *out) }
	if flag.NArg() == 2 {
		work = func() error { return compare(os.Stdout, flag.Arg(0), flag.Arg(1)) }
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
	var page bytes.Buffer
	missing := write(&page, cpu, measured)
	fmt.Fprintln(echo)
	if _, err := echo.Write(page.Bytes()); err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("no figure for %s; the file is left as it was", strings.Join(missing, ", "))
	}
	if out == "" {
		return nil
	}
	return os.WriteFile(out, page.Bytes(), 0o644)
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

// write renders the page and returns the rows that have no figure.
func write(page io.Writer, cpu string, measured figures) (missing []string) {
	fmt.Fprintf(page, `# Benchmarks

What `+"`make bench`"+` measured on %s, on %d cores (%s/%s, %s). Every benchmark starts real daemons
with an empty store. CPU is in milliseconds of user and system time per unit of work; compare it rather than
seconds. "Usual" is the figure of the usual control plane on another machine, 2 cores of an Intel Xeon at 2.3 GHz, so
the ratio to it holds the ratio of the machines too; "target" is what Keelson is built for.

| what | figure | target | usual |
|---|--:|--:|--:|
`, time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, cpu)
	for _, r := range rows {
		values, ok := measured[r.key]
		if !ok {
			missing = append(missing, r.key)
			continue
		}
		fmt.Fprintf(page, "| %s | %s | %s | %s |\n", r.what, format(mean(values)), orDash(r.target), orDash(r.usual))
	}
	return missing
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

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
