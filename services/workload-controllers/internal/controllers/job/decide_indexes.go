package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// indexes is a set of completion indexes: runs in increasing order that neither overlap nor touch.
type indexes []run

type run struct{ first, last int }

// parseIndexes parses a text like "1,3-5,7" up to the number of completions. It skips what it cannot parse.
func parseIndexes(text string, completions int) indexes {
	var set indexes
	for part := range strings.SplitSeq(text, ",") {
		from, to, interval := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		last := first
		if interval {
			if last, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		if last = min(last, completions-1); first >= 0 && first <= last {
			set = append(set, run{first, last})
		}
	}
	return set.merged()
}

// String returns the set in the API's format: three or more consecutive indexes as the first and the last.
func (s indexes) String() string {
	var parts []string
	for _, r := range s {
		switch r.last - r.first {
		case 0:
			parts = append(parts, strconv.Itoa(r.first))
		case 1:
			parts = append(parts, strconv.Itoa(r.first), strconv.Itoa(r.last))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", r.first, r.last))
		}
	}
	return strings.Join(parts, ",")
}

func (s indexes) count() int {
	total := 0
	for _, r := range s {
		total += r.last - r.first + 1
	}
	return total
}

func (s indexes) has(index int) bool {
	at, found := slices.BinarySearchFunc(s, index, func(r run, index int) int { return r.first - index })
	return found || at > 0 && s[at-1].last >= index
}

// with returns the set with more indexes.
func (s indexes) with(more ...int) indexes {
	if len(more) == 0 {
		return s
	}
	all := slices.Clone(s)
	for _, index := range more {
		all = append(all, run{index, index})
	}
	return all.merged()
}

func (s indexes) union(other indexes) indexes { return slices.Concat(s, other).merged() }

// common returns how many indexes are in both sets.
func (s indexes) common(other indexes) int {
	return s.count() + other.count() - s.union(other).count()
}

// merged returns runs in any order as a set. It may change them.
func (s indexes) merged() indexes {
	slices.SortFunc(s, func(a, b run) int { return a.first - b.first })
	var set indexes
	for _, r := range s {
		if n := len(set); n > 0 && r.first <= set[n-1].last+1 {
			set[n-1].last = max(set[n-1].last, r.last)
			continue
		}
		set = append(set, r)
	}
	return set
}

// missing returns the first n of the indexes below completions that are not in the set.
func (s indexes) missing(completions, n int) []int {
	var found []int
	next := 0
	for _, r := range append(slices.Clip(s), run{completions, completions}) {
		for ; next < min(r.first, completions) && len(found) < n; next++ {
			found = append(found, next)
		}
		next = r.last + 1
	}
	return found
}

// noIndex is the index of a Pod without an index.
const noIndex = -1

// indexOf returns the completion index of a Pod, or noIndex.
func indexOf(pod *corev1.Pod) int { return number(pod, batchv1.JobCompletionIndexAnnotation, noIndex) }

// number parses an annotation with a number from 0 on.
func number(pod *corev1.Pod, annotation string, otherwise int) int {
	value, err := strconv.ParseInt(pod.Annotations[annotation], 10, 32)
	if err != nil || value < 0 {
		return otherwise
	}
	return int(value)
}
