package stats

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/observed"
	"keelson.dev/services/nodeagent/internal/runtime"
	"keelson.dev/services/nodeagent/internal/volumestats"
)

// told returns a value as clients get it; nil stands for what is left out.
func told(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const epoch = `"time":"1970-01-01T00:00:09Z"`

// What the kernel or the runtime does not report is left out, also if other figures are known.
func TestSummaryLeavesOut(t *testing.T) {
	at := time.Unix(9, 0).UTC()
	for _, row := range []struct {
		name string
		got  any
		want string
	}{
		{"no cgroup: cpu", sample{}.cpu(), "null"},
		{"no cgroup: memory", sample{}.memory(), "null"},
		{"no cpu controller", sample{at: at, Usage: cgroup.Usage{Memory: 1}}.cpu(), "null"},
		{"no memory controller", sample{at: at, Usage: cgroup.Usage{CPUNanos: 1}}.memory(), "null"},
		{"one reading", sample{at: at, Usage: cgroup.Usage{CPUNanos: 1}}.cpu(),
			`{` + epoch + `,"usageCoreNanoSeconds":1}`},
		{"two readings", sample{at: at, cores: ptr.To[uint64](0), Usage: cgroup.Usage{CPUNanos: 1}}.cpu(),
			`{` + epoch + `,"usageNanoCores":0,"usageCoreNanoSeconds":1}`},
		{"no limit", sample{at: at, Usage: cgroup.Usage{Memory: 3, WorkingSet: 2}}.memory(), `{` + epoch +
			`,"usageBytes":3,"workingSetBytes":2,"rssBytes":0,"pageFaults":0,"majorPageFaults":0}`},
		{"beyond the limit", sample{at: at, Usage: cgroup.Usage{Memory: 3, WorkingSet: 3, MemoryLimit: 2}}.memory(),
			`{` + epoch + `,"availableBytes":0,"usageBytes":3,"workingSetBytes":3,"rssBytes":0,"pageFaults":0,` +
				`"majorPageFaults":0}`},
		{"for how long nobody says, disks", io(at, nil), "null"},
		{"for how long, disks", io(at, &cgroup.Stall{Some: cgroup.Waits{Avg10: 1.5, Avg60: 2, Avg300: 3, Total: 4}}),
			`{` + epoch + `,"psi":{"full":{"total":0,"avg10":0,"avg60":0,"avg300":0},` +
				`"some":{"total":4,"avg10":1.5,"avg60":2,"avg300":3}}}`},
		{"for how long, processors", sample{at: at, Usage: cgroup.Usage{CPUNanos: 1,
			Stalls: cgroup.Stalls{CPU: &cgroup.Stall{Full: cgroup.Waits{Total: 5}}}}}.cpu(),
			`{` + epoch + `,"usageCoreNanoSeconds":1,"psi":{"full":{"total":5,"avg10":0,"avg60":0,"avg300":0},` +
				`"some":{"total":0,"avg10":0,"avg60":0,"avg300":0}}}`},
		{"for how long, memory", sample{at: at, Usage: cgroup.Usage{Memory: 1, WorkingSet: 1,
			Stalls: cgroup.Stalls{Memory: &cgroup.Stall{Full: cgroup.Waits{Total: 6}}}}}.memory(),
			`{` + epoch + `,"usageBytes":1,"workingSetBytes":1,"rssBytes":0,"pageFaults":0,"majorPageFaults":0,` +
				`"psi":{"full":{"total":6,"avg10":0,"avg60":0,"avg300":0},` +
				`"some":{"total":0,"avg10":0,"avg60":0,"avg300":0}}}`},
		{"no network", network{}.stats(), "null"},
		{"no way out", network{at: at, interfaces: []traffic{{name: "net1", rxBytes: 1, txErrors: 4}}}.stats(),
			`{` + epoch + `,"name":"","interfaces":[{"name":"net1","rxBytes":1,"rxErrors":0,"txBytes":0,"txErrors":4}]}`},
		{"inodes are not counted", space(metav1.NewTime(at), diskusage.Space{Bytes: 9, BytesAvailable: 4}),
			`{` + epoch + `,"availableBytes":4,"capacityBytes":9}`},
	} {
		if got := told(t, row.got); got != row.want {
			t.Errorf("%s:\n%s, want\n%s", row.name, got, row.want)
		}
	}
}

// waiting is the stall of a wait for disks.
func waiting(total uint64) cgroup.Stalls {
	return cgroup.Stalls{IO: &cgroup.Stall{Some: cgroup.Waits{Total: total}}}
}

// held is what a volume on a file system of its own holds.
func held(bytes, inodes int64) diskusage.Volume {
	return diskusage.Volume{Usage: diskusage.Usage{Bytes: bytes, Inodes: inodes},
		Space: diskusage.Space{Bytes: 70, BytesFree: 60, BytesAvailable: 50, Inodes: 40, InodesFree: 30}}
}

// claimant is a Pod with volumes.
func claimant() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "web", Namespace: "ns"}}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}},
		{Name: "own", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "disk", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "of-driver"}}},
	}
	return pod
}

// driven is what drivers say about all volumes: it counts where nothing was measured.
func driven(pod *corev1.Pod, v *corev1.Volume) (volumestats.Figures, bool) {
	return volumestats.Figures{At: time.Unix(9, 0).UTC(),
		Bytes:  volumestats.Amounts{Total: ptr.To[uint64](3), Available: ptr.To[uint64](2), Used: ptr.To[uint64](1)},
		Inodes: volumestats.Amounts{Used: ptr.To[uint64](4)}}, v.Name != "host" && v.Name != "own" && pod.UID == "u"
}

// The results of the survey are reported where clients look for them: bytes and inodes of the object itself, beside
// the size of its file system; the claim's name with the volume.
func TestSummaryDisk(t *testing.T) {
	at := time.Unix(9, 0).UTC()
	pod := claimant()
	other := pod.DeepCopy()
	other.UID = "v"
	r := &reading{hostAt: at, host: host{stalls: waiting(3)}, pods: []podReading{
		{Pod: Pod{Pod: pod}, usage: sample{at: at, Usage: cgroup.Usage{Pids: 3, Stalls: waiting(1)}},
			containers: []containerReading{{name: "app"}, {name: "side",
				usage: sample{at: at, Usage: cgroup.Usage{Stalls: waiting(2)}}}}},
		{Pod: Pod{Pod: other}, containers: []containerReading{{name: "app"}}},
	}}
	found := &diskusage.Found{At: at, Pods: map[types.UID]diskusage.Parcel{"u": {
		Logs:    map[string]diskusage.Usage{"app": {Bytes: 1, Inodes: 2}},
		Layers:  map[string]diskusage.Usage{"app": {Bytes: 3, Inodes: 4}, "side": {}},
		Volumes: map[string]diskusage.Volume{"data": held(5, 6), "own": held(7, 8), "scratch": held(9, 10)},
		Total:   &diskusage.Usage{Bytes: 11, Inodes: 12},
	}}, Images: &diskusage.Images{Space: diskusage.Space{Bytes: 90, BytesAvailable: 80},
		ImageFs: runtime.ImageFs{Bytes: ptr.To[uint64](13)}}}
	more := rest{networks: &networks{}, space: diskusage.Space{Bytes: 700, BytesFree: 600, BytesAvailable: 500,
		Inodes: 400, InodesFree: 300}, disk: found, processes: ptr.To[int64](14), drivers: driven}
	summary := summarize("n1", r)
	more.complete(summary, r)
	node, stats := summary.Node, summary.Pods[0]
	onNode := `"availableBytes":500,"capacityBytes":700,"usedBytes":%,"inodesFree":300,"inodes":400,"inodesUsed":`
	volume := `"availableBytes":50,"capacityBytes":70,"usedBytes":%,"inodesFree":30,"inodes":40,"inodesUsed":`
	fill := func(pattern string, bytes, inodes int) string {
		before, after, _ := strings.Cut(pattern, "%")
		return `{` + epoch + `,` + before + strconv.Itoa(bytes) + after + strconv.Itoa(inodes)
	}
	for _, row := range []struct {
		name string
		got  any
		want string
	}{
		{"node", node.Fs, fill(onNode, 100, 100) + "}"},
		{"images", node.Runtime, `{"imageFs":{` + epoch + `,"availableBytes":80,"capacityBytes":90,"usedBytes":13}}`},
		{"processes of the node", node.Rlimit, `{` + epoch + `,"curproc":14}`},
		{"no swap", node.Swap, "null"},
		{"processes", stats.ProcessStats, `{"process_count":3}`},
		{"disks of the node", node.IO.PSI.Some.Total, "3"},
		{"disks of the Pod", stats.IO.PSI.Some.Total, "1"},
		{"disks of a container", stats.Containers[1].IO.PSI.Some.Total, "2"},
		{"disks of a container of which nobody says it", stats.Containers[0].IO, "null"},
		{"all of the Pod", stats.EphemeralStorage, fill(onNode, 11, 12) + "}"},
		{"logs", stats.Containers[0].Logs, fill(onNode, 1, 2) + "}"},
		{"no logs", stats.Containers[1].Logs, "null"},
		{"layer", stats.Containers[0].Rootfs, `{` + epoch + `,"availableBytes":80,"capacityBytes":90,"usedBytes":3,` +
			`"inodesUsed":4}`},
		{"nothing written", stats.Containers[1].Rootfs, `{` + epoch + `,"availableBytes":80,"capacityBytes":90,` +
			`"usedBytes":0,"inodesUsed":0}`},
		{"volumes", stats.VolumeStats, `[` +
			fill(volume, 5, 6) + `,"name":"data","pvcRef":{"name":"claim","namespace":"ns"}},` +
			fill(volume, 7, 8) + `,"name":"own","pvcRef":{"name":"web-own","namespace":"ns"}},` +
			fill(volume, 9, 10) + `,"name":"scratch"},{` + epoch + `,"availableBytes":2,"capacityBytes":3,` +
			`"usedBytes":1,"inodesUsed":4,"name":"disk","pvcRef":{"name":"of-driver","namespace":"ns"}}]`},
		{"a Pod that was not there then", summary.Pods[1], `{"podRef":{"name":"web","namespace":"ns","uid":"v"},` +
			`"startTime":null,"containers":[{"name":"app","startTime":null}]}`},
	} {
		if got := told(t, row.got); got != row.want {
			t.Errorf("%s:\n%s, want\n%s", row.name, got, row.want)
		}
	}
	more.disk = nil
	summary = summarize("n1", r)
	more.complete(summary, r)
	if all := summary.Pods[0].VolumeStats; len(all) != 3 || *all[0].UsedBytes != 1 || all[0].Name != "data" {
		t.Errorf("before the first survey: %s", told(t, all))
	}
	more.disk = found
	r.host.swapTotal, r.host.swapFree = 9, 4
	found.Images, more.maxPIDs = nil, 15
	summary = summarize("n1", r)
	more.complete(summary, r)
	if got := told(t, summary.Node.Swap) + told(t, summary.Node.Rlimit) + told(t, summary.Node.Runtime) +
		told(t, summary.Pods[0].Containers[0].Rootfs); got != `{`+epoch+`,"swapAvailableBytes":4,"swapUsageBytes":5}{`+
		epoch+`,"maxpid":15,"curproc":14}nullnull` {
		t.Errorf("swap, a bound of processes, and no file system of images: %s", got)
	}
}

// A reported total never falls, and grows by no more than the kernel's.
func TestTotals(t *testing.T) {
	all := totals{}
	for i, row := range []struct{ kernel, want uint64 }{
		{10, 10}, {15, 15}, {4, 15}, {4, 15}, {6, 17}, {0, 17}, {1, 18}, {100, 117},
	} {
		if got := all.grow("u", "x", row.kernel); got != row.want {
			t.Errorf("%d. %d: told as %d, want %d", i, row.kernel, got, row.want)
		}
	}
	if got := all.grow("u", "y", 3) + all.grow("v", "x", 4); got != 7 {
		t.Errorf("others are told as %d, want 7", got)
	}
	all.keep(map[string]bool{"v": true})
	if got := all.grow("u", "x", 1); got != 1 || len(all) != 2 {
		t.Errorf("a Pod that was forgotten is told as %d, want 1", got)
	}
}

const header = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop\n"

func TestParseInterfaces(t *testing.T) {
	got := parseInterfaces(header + "    lo: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n" +
		"  eth0:   11 2 3 4 5 6 7 8 19 10 21 12 13 14 15 16\n eth1: 1 2\nveth7: 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0\n")
	want := traffic{name: "eth0", rxBytes: 11, rxPackets: 2, rxErrors: 3, rxDropped: 4, txBytes: 19, txPackets: 10,
		txErrors: 21, txDropped: 12}
	if len(got) != 2 || got[0] != want || got[1].name != "veth7" {
		t.Errorf("got %+v", got)
	}
	for routes, want := range map[string]string{
		"": "", "Iface Destination\neth0 0000FEA9 00000000 0001 0 0 0 0000FFFF 0 0 0\n": "",
		"eth0 00000000 01 3 0 0 0 0000FFFF 0\neth1 00000000 01 3 0 0 0 00000000 0 0 0\n": "eth1",
	} {
		if got := defaultInterface(routes); got != want {
			t.Errorf("%q: %q, want %q", routes, got, want)
		}
	}
}

// lay writes a proc file with the traffic of a process's network.
func lay(t *testing.T, proc, process, dev string) {
	t.Helper()
	dir := filepath.Join(proc, process, "net")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "dev"), []byte(header+dev), 0o644); err != nil {
		t.Fatal(err)
	}
}

// changing returns other processes from one call to the next.
type changing struct {
	figures
	calls [][]int
}

func (c *changing) Processes(*corev1.Pod, string) ([]int, error) {
	now := c.calls[0]
	c.calls = c.calls[1:]
	return now, nil
}

// A Pod's network is that of its sandbox's process; if that is uncertain, none is reported.
func TestPodNetwork(t *testing.T) {
	proc := t.TempDir()
	lay(t, proc, "7", "eth0: 5 0 0 0 0 0 0 0 6 0 0 0 0 0 0 0\n")
	running := []observed.Container{{ID: "c"}, {ID: "d", SandboxID: "s"}}
	for _, row := range []struct {
		name    string
		host    bool
		running []observed.Container
		calls   [][]int
		want    bool
	}{
		{name: "its own", running: running, calls: [][]int{{7}, {7}}, want: true},
		{name: "the machine's", host: true, running: running},
		{name: "nothing runs"},
		{name: "no process", running: running, calls: [][]int{{}}},
		{name: "the process has gone", running: running, calls: [][]int{{8}}},
		{name: "another process has its ID", running: running, calls: [][]int{{7}, {9}}},
	} {
		c := NewCollector(Config{Proc: proc, Usage: &changing{calls: row.calls}})
		n, err := c.podNetwork(&Pod{Pod: &corev1.Pod{Spec: corev1.PodSpec{HostNetwork: row.host}},
			Running: row.running})
		if got := err == nil && n.main == "eth0" && n.interfaces[0].txBytes == 6; got != row.want ||
			(err == nil) != row.want {
			t.Errorf("%s: %+v, %v", row.name, n, err)
		}
	}
}

// Readers within a second get the same reading; afterwards the totals of all Pods' networks continue even if
// another sandbox starts at zero.
func TestReadingStands(t *testing.T) {
	proc := t.TempDir()
	for file, text := range map[string]string{"stat": "cpu 1 1 1 1 1 1 1 1 1\nbtime 1\n",
		"meminfo": "MemTotal: 9 kB\nMemAvailable: 8 kB\n", "loadavg": "0 0 0 1/55 3\n"} {
		if err := os.WriteFile(filepath.Join(proc, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lay(t, proc, "self", "up0: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\nveth1: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n")
	lay(t, proc, "7", "eth0: 5 0 0 0 0 0 0 0 6 0 0 0 0 0 0 0\n")
	lay(t, proc, "8", "eth0: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n")
	synctest.Test(t, func(t *testing.T) {
		f := &figures{cpu: 1000, pids: []int{7}}
		c := collector(t, f)
		c.config.Proc = proc
		pods := c.config.Pods
		c.config.Pods = func() []Pod {
			all := pods()[:1]
			all[0].Running[0].SandboxID = "s"
			return all
		}
		ask := func() (cpu, rx uint64) {
			t.Helper()
			summary, err := c.Summary(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			if n := summary.Node; *n.Rlimit.NumOfRunningProcesses != 55 || len(n.Network.Interfaces) != 1 {
				t.Errorf("node %s", told(t, n))
			}
			return *summary.Pods[0].CPU.UsageCoreNanoSeconds, *summary.Pods[0].Network.RxBytes
		}
		for i, row := range []struct {
			pass         time.Duration
			cpu          uint64
			pid          int
			wantCPU, net uint64
		}{
			{0, 1000, 7, 1000, 5},
			{999 * time.Millisecond, 3000, 8, 1000, 5},
			{time.Millisecond, 3000, 8, 3000, 5},
			{time.Second, 2000, 7, 3000, 9},
		} {
			pass(row.pass)
			f.cpu, f.pids = row.cpu, []int{row.pid}
			if cpu, net := ask(); cpu != row.wantCPU || net != row.net {
				t.Errorf("%d.: processor %d, network %d; want %d, %d", i, cpu, net, row.wantCPU, row.net)
			}
		}
		lean, err := c.Summary(t.Context(), true)
		if err != nil || lean.Pods[0].Network != nil || lean.Pods[0].ProcessStats != nil || lean.Node.Fs != nil ||
			lean.Node.Rlimit != nil || lean.Pods[0].CPU == nil || lean.Node.Memory == nil {
			t.Errorf("processor and memory alone: %s, %v", told(t, lean), err)
		}
	})
}
