package e2e

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/nftables"
	"k8s.io/client-go/rest"

	"keelson.dev/kit/nettest"
	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// footprint is what a mesh of one node has of everything that could grow with every Pod, by the name of the thing.
type footprint map[string]int

// slack is by how much a figure may grow that is not the same at any two moments: by the ending of its name.
var slack = map[string]func(before int) int{
	" goroutines": func(int) int { return 20 },
	" open files": func(int) int { return 10 },
	" MiB":        func(before int) int { return 16 + before/4 },
}

// readFootprint counts only what belongs to this mesh, because the machine may have others. The apiserver's memory
// is left out: it keeps the Events of an hour.
func readFootprint(t testing.TB, m *processes.Mesh) footprint {
	t.Helper()
	f := footprint{"firewall rules and elements": firewall(t, meshID(m))}
	for _, name := range nettest.Standing(t) {
		if strings.Contains(name, meshID(m)) {
			f["names in the kernel's network"]++
		}
	}
	for _, what := range []string{"links", "mounts", "shims"} {
		left, err := leavings[what](m)
		must(t, err)
		f[what] = len(left)
	}
	for _, d := range append(slices.Clone(mesh.Daemons), "containerd-node-1") {
		for _, p := range m.Of(t, d) {
			f.process(t, m, d, p)
		}
	}
	f["files"] = entries(t, m.DataDir+"/nodes")
	roots, err := filepath.Glob("/sys/fs/cgroup/*" + m.CgroupRoot())
	must(t, err)
	for _, root := range append(roots, "/sys/fs/cgroup"+m.CgroupRoot()) {
		f["cgroups"] += directories(t, root)
	}
	return f
}

// process counts what one process holds.
func (f footprint) process(t testing.TB, m *processes.Mesh, d mesh.Daemon, p subprocess.Process) {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID))
	if err != nil {
		t.Fatalf("counting the open files of %s: %v", p.Name, err)
	}
	f[p.Name+" open files"] = len(files)
	if d != mesh.APIServer {
		f[p.Name+" MiB"] = residentMiB(t, p.PID)
	}
	if address := processes.Argument(p, "--status-address"); address != "" {
		f[p.Name+" goroutines"] = goroutines(t, m.Admin(), "https://"+address)
	}
}

func residentMiB(t testing.TB, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
			kib, err := strconv.Atoi(fields[1])
			must(t, err)
			return kib / 1024
		}
	}
	t.Fatalf("process %d has no VmRSS", pid)
	return 0
}

// goroutines asks a daemon for its metrics.
func goroutines(t testing.TB, admin *rest.Config, host string) int {
	t.Helper()
	for _, family := range scenario.MetricsOf(t, admin, host) {
		if family.GetName() == "go_goroutines" {
			return int(family.GetMetric()[0].GetGauge().GetValue())
		}
	}
	t.Fatalf("the metrics of %s do not tell how many goroutines there are", host)
	return 0
}

// firewall counts the rules of all chains and the elements of all sets of a mesh's tables.
func firewall(t testing.TB, id string) int {
	t.Helper()
	conn, err := nftables.New()
	must(t, err)
	chains, err := conn.ListChains()
	must(t, err)
	n := 0
	for _, chain := range chains {
		if !strings.Contains(chain.Table.Name, id) {
			continue
		}
		rules, err := conn.GetRules(chain.Table, chain)
		must(t, err)
		n += len(rules)
	}
	tables, err := conn.ListTables()
	must(t, err)
	for _, table := range tables {
		if !strings.Contains(table.Name, id) {
			continue
		}
		sets, err := conn.GetSets(table)
		must(t, err)
		for _, set := range sets {
			elements, err := conn.GetSetElements(set)
			must(t, err)
			n += len(elements)
		}
	}
	return n
}

// entries counts everything below a folder; one that is not there has nothing.
func entries(t testing.TB, root string) int {
	return walk(t, root, func(fs.DirEntry) bool { return true })
}

func directories(t testing.TB, root string) int { return walk(t, root, fs.DirEntry.IsDir) }

func walk(t testing.TB, root string, counts func(fs.DirEntry) bool) (n int) {
	t.Helper()
	err := filepath.WalkDir(root, func(_ string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil && counts(entry) {
			n++
		}
		return err
	})
	must(t, err)
	return n
}

// grown says what there is more of than before, beyond the slack; "" if nothing.
func (f footprint) grown(before footprint) string {
	var more []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		allowed := before[name]
		for ending, by := range slack {
			if strings.HasSuffix(name, ending) {
				allowed += by(before[name])
			}
		}
		if f[name] > allowed {
			more = append(more, fmt.Sprintf("%s: %d after %d", name, f[name], before[name]))
		}
	}
	return strings.Join(more, "; ")
}

// What grows with every Pod is seen in a cycle of a hundred, and what wavers is not.
func TestSoakGrowth(t *testing.T) {
	before := footprint{"x goroutines": 50, "x open files": 20, "x MiB": 80, "cgroups": 4}
	for _, row := range []struct {
		name string
		now  int
		want string
	}{
		{"x goroutines", 70, ""}, {"x goroutines", 71, "x goroutines: 71 after 50"},
		{"x open files", 30, ""}, {"x open files", 31, "x open files: 31 after 20"},
		{"x MiB", 116, ""}, {"x MiB", 117, "x MiB: 117 after 80"},
		{"cgroups", 4, ""}, {"cgroups", 5, "cgroups: 5 after 4"}, {"cgroups", 3, ""},
		{"new", 1, "new: 1 after 0"},
	} {
		now := maps.Clone(before)
		now[row.name] = row.now
		if got := now.grown(before); got != row.want {
			t.Errorf("%s %d: %q, want %q", row.name, row.now, got, row.want)
		}
	}
}
