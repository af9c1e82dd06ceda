package usage

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// What a nodeagent may say at most: a node full of Pods says a tenth of it.
const (
	maxAnswer     = 4 << 20
	maxLine       = 16 << 10
	maxContainers = 10_000
)

// The metrics that are read; all others are passed over.
const (
	nodeCPU         = "node_cpu_usage_seconds_total"
	nodeMemory      = "node_memory_working_set_bytes"
	containerCPU    = "container_cpu_usage_seconds_total"
	containerMemory = "container_memory_working_set_bytes"
	containerStart  = "container_start_time_seconds"
)

// Parse reads resource metrics in the text format of Prometheus. It keeps nothing else in memory than what it returns.
// A sample without a time is of now.
func Parse(answer io.Reader, now time.Time) (*Reading, error) {
	limited := &io.LimitedReader{R: answer, N: maxAnswer + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, 4<<10), maxLine)
	reading := &Reading{Pods: map[PodName]Containers{}}
	for number := 1; lines.Scan(); number++ {
		if err := reading.add(lines.Text(), now); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("a line has more than %d bytes", maxLine)
	case err != nil:
		return nil, err
	case limited.N == 0:
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return reading, nil
}

// add takes in one line.
func (r *Reading) add(line string, now time.Time) error {
	end := strings.IndexAny(line, "{ \t")
	if end < 0 {
		return nil
	}
	metric := line[:end]
	switch metric {
	case nodeCPU, nodeMemory, containerCPU, containerMemory, containerStart:
	default:
		return nil
	}
	labels, rest, err := parseLabels(strings.TrimLeft(line[end:], " \t"))
	if err != nil {
		return fmt.Errorf("%s: %w", metric, err)
	}
	value, at, err := parseValue(rest, now)
	if err != nil {
		return fmt.Errorf("%s: %w", metric, err)
	}
	if metric == nodeCPU || metric == nodeMemory {
		r.Node.set(metric, value, at)
		r.At = later(r.At, r.Node.At)
		return nil
	}
	pod, container := PodName{labels["namespace"], labels["pod"]}, labels["container"]
	if pod.Namespace == "" || pod.Name == "" || container == "" {
		return fmt.Errorf("%s: the labels namespace, pod and container must be given", metric)
	}
	if r.Pods[pod] == nil {
		r.Pods[pod] = Containers{}
	}
	sample, known := r.Pods[pod][container]
	if !known {
		if r.containers++; r.containers > maxContainers {
			return fmt.Errorf("more than %d containers", maxContainers)
		}
	}
	sample.set(metric, value, at)
	r.Pods[pod][container] = sample
	r.At = later(r.At, sample.At)
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (s *Sample) set(metric string, value float64, at time.Time) {
	switch metric {
	case nodeCPU, containerCPU:
		s.CPU, s.At, s.hasCPU = value, at, true // the time of the counter is what a rate needs
	case nodeMemory, containerMemory:
		s.Memory, s.hasMemory = int64(value), true
		if !s.hasCPU {
			s.At = at
		}
	case containerStart:
		s.StartedAt = seconds(value)
	}
}

// largest bounds the figures: what is beyond is no time, no memory and no CPU time of any machine, and would overflow
// what is made of it.
const largest = 1 << 53

// parseValue reads a value and, if there is one, its time in milliseconds.
func parseValue(text string, now time.Time) (float64, time.Time, error) {
	fields := strings.Fields(text)
	if len(fields) != 1 && len(fields) != 2 {
		return 0, time.Time{}, fmt.Errorf("%q must be a value and at most a time", text)
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	if err != nil || math.IsNaN(value) || value < 0 || value > largest {
		return 0, time.Time{}, fmt.Errorf("the value %q must be a number from 0 to 2^53", fields[0])
	}
	if len(fields) == 1 {
		return value, now, nil
	}
	milliseconds, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || milliseconds < 0 || milliseconds > latest {
		return 0, time.Time{}, fmt.Errorf("the time %q must be in milliseconds of this age", fields[1])
	}
	return value, time.UnixMilli(milliseconds), nil
}

// latest is the last millisecond of the year 9999: the API can write no later time.
const latest = 253402300799999

func seconds(value float64) time.Time {
	if value > latest/1000 {
		return time.Time{}
	}
	whole, part := math.Modf(value)
	return time.Unix(int64(whole), int64(part*float64(time.Second)))
}

// parseLabels reads {name="value",...}, which may be missing, and returns the rest of the line.
func parseLabels(text string) (map[string]string, string, error) {
	rest, ok := strings.CutPrefix(text, "{")
	if !ok {
		return nil, text, nil
	}
	labels := map[string]string{}
	for {
		rest = strings.TrimLeft(rest, " \t,")
		if after, ok := strings.CutPrefix(rest, "}"); ok {
			return labels, after, nil
		}
		name, quoted, ok := strings.Cut(rest, "=")
		if !ok || !strings.HasPrefix(quoted, `"`) {
			return nil, "", errors.New(`labels must have the form {name="value"}`)
		}
		value, after, err := parseQuoted(quoted[1:])
		if err != nil {
			return nil, "", err
		}
		labels[strings.TrimSpace(name)], rest = value, after
	}
}

// parseQuoted reads up to the closing quote.
func parseQuoted(text string) (string, string, error) {
	var value strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return value.String(), text[i+1:], nil
		case '\\':
			i++
			if i == len(text) {
				return "", "", errors.New("a label's value does not end")
			}
			if text[i] == 'n' {
				value.WriteByte('\n')
				continue
			}
			value.WriteByte(text[i])
		default:
			value.WriteByte(text[i])
		}
	}
	return "", "", errors.New("a label's value does not end")
}
