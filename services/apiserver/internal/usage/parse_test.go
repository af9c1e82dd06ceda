package usage

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var now = time.Unix(1_700_000_000, 0)

// text is what nodeagents say, with what a reader may meet besides.
const text = `# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in core-seconds
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="app",namespace="ns",pod="web"} 4.5 1700000001000
container_memory_working_set_bytes{container="app",namespace="ns",pod="web"} 1.5e+06 1700000001000
container_start_time_seconds{container="app",namespace="ns",pod="web"} 1.6999999905e+09
container_cpu_usage_seconds_total{pod="web" , namespace="ns",container="side\"c\\a\n",extra="}",} 1

container_memory_working_set_bytes{container="half",namespace="ns",pod="web"} 7
pod_cpu_usage_seconds_total{namespace="ns",pod="web"} 9 1700000001000
somebody_elses{broken 1 2 3 4
no-value
node_cpu_usage_seconds_total 100.25 1700000002000
node_memory_working_set_bytes 2.5e+09 1700000002000
scrape_error 0
`

func TestParse(t *testing.T) {
	reading, err := Parse(strings.NewReader(text), now)
	if err != nil {
		t.Fatal(err)
	}
	wantNode := Sample{At: now.Add(2 * time.Second), CPU: 100.25, Memory: 2_500_000_000, hasCPU: true, hasMemory: true}
	if reading.Node != wantNode || !reading.At.Equal(now.Add(2*time.Second)) {
		t.Errorf("node %+v at %s", reading.Node, reading.At)
	}
	got := reading.Pods[PodName{"ns", "web"}]
	want := Containers{
		"app": {At: now.Add(time.Second), CPU: 4.5, Memory: 1_500_000, hasCPU: true, hasMemory: true,
			StartedAt: time.Unix(1_699_999_990, 500_000_000)},
		"side\"c\\a\n": {At: now, CPU: 1, hasCPU: true},
		"half":         {At: now, Memory: 7, hasMemory: true},
	}
	if len(reading.Pods) != 1 || len(got) != len(want) {
		t.Fatalf("pods %+v", reading.Pods)
	}
	for name, sample := range want {
		if got[name] != sample {
			t.Errorf("%q: %+v, want %+v", name, got[name], sample)
		}
	}
	if !got["app"].Complete() || got["half"].Complete() || got["side\"c\\a\n"].Complete() {
		t.Error("a sample is complete with both figures, and only then")
	}
}

// An answer that is wrong in one place is not believed in another, and says where it is wrong.
func TestParseRefuses(t *testing.T) {
	container := func(labels string) string { return "container_cpu_usage_seconds_total{" + labels }
	full := `container="c",namespace="n",pod="p"`
	for name, row := range map[string]struct{ line, want string }{
		"no value": {"node_cpu_usage_seconds_total ", `"" must be a value and at most a time`},
		"three fields": {"node_cpu_usage_seconds_total 1 2 3",
			`node_cpu_usage_seconds_total: "1 2 3" must be a value and at most a time`},
		"no number":       {"node_cpu_usage_seconds_total x", `the value "x" must be a number from 0 to 2^53`},
		"below zero":      {"node_cpu_usage_seconds_total -0.1", "must be a number from 0 to 2^53"},
		"not a number":    {"node_memory_working_set_bytes NaN", "must be a number from 0 to 2^53"},
		"endless":         {"node_memory_working_set_bytes +Inf", "must be a number from 0 to 2^53"},
		"too much":        {"node_memory_working_set_bytes 9007199254740994", "must be a number from 0 to 2^53"},
		"no time":         {"node_cpu_usage_seconds_total 1 x", `the time "x" must be in milliseconds`},
		"before all time": {"node_cpu_usage_seconds_total 1 -1", `the time "-1" must be in milliseconds`},
		"the year 10000":  {"node_cpu_usage_seconds_total 1 253402300800000", "must be in milliseconds"},
		"no labels":       {"container_cpu_usage_seconds_total 1", "namespace, pod and container must be given"},
		"no container":    {container(`namespace="n",pod="p"} 1`), "namespace, pod and container must be given"},
		"no pod":          {container(`container="c",namespace="n",pod=""} 1`), "must be given"},
		"no quotes":       {container(`container=c} 1`), `labels must have the form {name="value"}`},
		"open labels":     {container(full), `labels must have the form {name="value"}`},
		"open value":      {container(`container="c`), "a label's value does not end"},
		"open escape":     {container(`container="c\`), "a label's value does not end"},
		"a long line":     {container(full + `,x="` + strings.Repeat("x", 16<<10) + `"} 1`), "more than 16384 bytes"},
		"too many Pods":   {containers(10_000), "more than 10000 containers"}, // and one in the first line
		"too many lines":  {strings.Repeat("# nothing\n", 4<<20/10) + "# more", "more than 4194304 bytes"},
	} {
		before := "node_cpu_usage_seconds_total 1\n"
		if name == "too many Pods" {
			before = container(full + "} 1\n")
		}
		_, err := Parse(strings.NewReader(before+row.line+"\n"), now)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", name, err, row.want)
		}
	}
	_, err := Parse(strings.NewReader("\n\nnode_cpu_usage_seconds_total x\n"), now)
	if err == nil || !strings.HasPrefix(err.Error(), "line 3: node_cpu_usage_seconds_total: ") {
		t.Errorf("the place: %v", err)
	}
}

// containers are two lines of each of that many containers.
func containers(count int) string {
	var text strings.Builder
	for i := range count {
		labels := fmt.Sprintf("{container=\"c\",namespace=\"n\",pod=\"p%d\"} 1\n", i)
		text.WriteString(containerCPU + labels + containerMemory + labels)
	}
	return text.String()
}

// What is just within the bounds is taken.
func TestParseBounds(t *testing.T) {
	for name, line := range map[string]string{
		"largest value": "node_memory_working_set_bytes 9007199254740992",
		"latest time":   "node_cpu_usage_seconds_total 1 253402300799999",
		"nothing":       "",
		"no feed":       "node_cpu_usage_seconds_total 1",
		"most Pods":     containers(10_000),
		"most bytes":    strings.Repeat("# nothing\n", 4<<20/10),
		"a tab":         "node_cpu_usage_seconds_total\t1\t2",
	} {
		if _, err := Parse(strings.NewReader(line), now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	reading, err := Parse(strings.NewReader(
		`container_start_time_seconds{container="c",namespace="n",pod="p"} 9e15`), now)
	if err != nil || !reading.Pods[PodName{"n", "p"}]["c"].StartedAt.IsZero() {
		t.Errorf("a start after all time: %+v, %v", reading, err)
	}
}

// Whatever an agent answers, there is a reading or an error, and nothing in it is beyond the bounds.
func FuzzParse(f *testing.F) {
	f.Add(text)
	f.Add("container_cpu_usage_seconds_total{container=\"\\")
	f.Fuzz(func(t *testing.T, answer string) {
		reading, err := Parse(strings.NewReader(answer), now)
		if err != nil {
			return
		}
		check := func(s Sample) error {
			if s.CPU < 0 || s.Memory < 0 || s.At.Year() > 9999 || s.StartedAt.Year() > 9999 {
				return fmt.Errorf("the sample %+v", s)
			}
			return nil
		}
		if err := check(reading.Node); err != nil {
			t.Error(err)
		}
		for _, containers := range reading.Pods {
			for _, sample := range containers {
				if err := check(sample); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
