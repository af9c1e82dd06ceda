package memory

import (
	"path"
	"strings"
)

const (
	// share of the memory that there is which the heap may take by default.
	share = 4
	// least is the smallest default: a mesh of a few hundred Pods under churn has needed as much.
	least = 512 << 20
	// quietAllocations is what share of the live heap may be allocated between two looks in quiet times.
	quietAllocations = 2
	// worthwhile is how much must be returnable for a collection to be worth its time, beside a share of the live heap.
	worthwhile = 16 << 20
	// returnable is what share of the live heap must be returnable.
	returnable = 2
)

const (
	// mostPercent and leastPercent bound how much garbage may lie beside what is alive before it is collected.
	mostPercent, leastPercent = 400, 60
	// roomPercent is what a limit leaves at least for garbage, in percent of what is in use.
	roomPercent = 25
)

// garbagePercent says how much garbage may lie beside what is alive before it is collected: what is left of the heap's
// target. A collection costs what is alive, so little that is alive makes it worth to wait for more garbage, and much
// that is alive leaves less room for it, but never so little that the collector would do nothing but run.
func garbagePercent(live, target uint64) int {
	room := max(target, live) - live
	return int(min(max(100*room/max(live, 1), leastPercent), mostPercent))
}

// followingLimit is the limit that holds where the user has asked for one: never so close to what is in use without any
// garbage that the collector would do nothing but run.
func followingLimit(asked int64, inUse uint64) int64 {
	return max(asked, int64(inUse+inUse*roomPercent/100))
}

// differs reports whether a value is so far from the current one that it is worth setting.
func differs[N int | int64](value, holds N) bool {
	return abs(value-holds) > holds/10
}

func abs[N int | int64](n N) N { return max(n, -n) }

// defaultLimit is the soft limit if the user has set none. It has no upper bound of its own: a limit below the live
// heap of a large mesh would have the collector take half of the processors.
func defaultLimit(available uint64) int64 {
	return int64(max(available/share, least)) // a quarter fits
}

// usage is how the runtime uses memory at one moment.
type usage struct {
	// live is what the last collection found alive; allocated counts all bytes since the start.
	live, allocated uint64
	// objects is what lives or waits for a collection; free is held but used by nothing; held is all that the process
	// has of the system, which is more than heap.
	objects, free, held uint64
}

// inUse is what the process would hold without any garbage.
func (u usage) inUse() uint64 {
	garbage := max(u.objects, u.live) - u.live
	return u.held - min(u.held, u.free+garbage)
}

// shouldReturn reports whether to collect and return memory to the system: little has happened between two looks,
// and there is much to return. Quiet means that the runtime alone would not have collected in that time.
func shouldReturn(before, now usage) bool {
	held := now.objects + now.free
	quiet := now.allocated-before.allocated <= now.live/quietAllocations
	return quiet && held >= now.live+max(worthwhile, now.live/returnable)
}

// limitFiles are the files that may limit the memory of a process, given its /proc/self/cgroup: those of its cgroup and
// of all above, in both versions. In a container the cgroup may be mounted at the root, which is among them.
func limitFiles(cgroup string) []string {
	var files []string
	for line := range strings.Lines(cgroup) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		root, name := "/sys/fs/cgroup", "memory.max"
		switch {
		case strings.Contains(","+parts[1]+",", ",memory,"):
			root, name = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case parts[1] != "":
			continue
		}
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			files = append(files, path.Join(root, dir, name))
			if dir == "/" {
				break
			}
		}
	}
	return files
}
