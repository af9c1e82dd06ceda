package staticpods

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// File is a file of the folder of manifests.
type File struct {
	Name string
	Data []byte
	// Problem is why the file could not be read; empty if it was.
	Problem string
}

// Instance is a static Pod that the node runs.
type Instance struct {
	// File is the name of the Pod's file.
	File string
	// Pod is complete.
	Pod *corev1.Pod
	// Stopping means that the Pod is being ended.
	Stopping bool
}

// Problem is an error in a file.
type Problem struct {
	File    string
	Message string
}

// plan is what is to be done for the files and the running Pods.
type plan struct {
	// Stop are the UIDs of Pods to end, Start the Pods to start. A Pod starts when no other of its name is left.
	Stop  []types.UID
	Start []Instance
	// From maps Pods that stay to their new file, if that has changed.
	From map[types.UID]string
	// Problems are sorted by file.
	Problems []Problem
}

// named is a Pod with its file and whether it runs.
type named struct {
	file string
	pod  *corev1.Pod
	runs bool
}

// decide compares files, sorted by name, with the running Pods. An invalid file stands for the Pod that it held
// before: a failed edit stops nothing. Of files with Pods of one name, the one whose Pod runs counts, else the
// first.
func decide(files []File, running []Instance, node string) plan {
	out := plan{From: map[types.UID]string{}}
	runs := map[types.UID]Instance{}
	byFile := map[string]Instance{}
	for _, r := range running {
		if !r.Stopping {
			runs[r.Pod.UID], byFile[r.File] = r, r
		}
	}
	var all []named
	for _, f := range files {
		pod, remark, err := f.pod(node)
		before, had := byFile[f.Name]
		switch {
		case err != nil && had:
			out.say(f.Name, "%s; the Pod %s that it held before runs on", err, nameOf(before.Pod))
			all = append(all, named{file: f.Name, pod: before.Pod, runs: true})
		case err != nil:
			out.say(f.Name, "%s", err)
		default:
			if remark != "" {
				out.say(f.Name, "it says what is not read: %s", remark)
			}
			_, known := runs[pod.UID]
			all = append(all, named{file: f.Name, pod: pod, runs: known})
		}
	}
	out.compare(out.pick(all), running, runs)
	slices.SortStableFunc(out.Problems, func(a, b Problem) int { return cmp.Compare(a.File, b.File) })
	return out
}

// pod returns the Pod in the file.
func (f File) pod(node string) (*corev1.Pod, string, error) {
	if f.Problem != "" {
		return nil, "", errors.New(f.Problem)
	}
	m, err := parse(f.Data)
	if err != nil {
		return nil, "", err
	}
	pod, err := complete(m, node)
	return pod, m.remark, err
}

// pick keeps one Pod of each name.
func (p *plan) pick(all []named) map[types.NamespacedName]named {
	wanted := map[types.NamespacedName]named{}
	for _, n := range all {
		first, taken := wanted[nameOf(n.pod)]
		switch {
		case !taken:
			wanted[nameOf(n.pod)] = n
		case n.pod.UID == first.pod.UID:
			p.say(n.file, "it holds the same Pod %s as %s", nameOf(n.pod), first.file)
		case n.runs && !first.runs:
			wanted[nameOf(n.pod)] = n
			p.say(first.file, "the Pod %s runs from %s already", nameOf(n.pod), n.file)
		default:
			p.say(n.file, "the Pod %s is in %s already", nameOf(n.pod), first.file)
		}
	}
	return wanted
}

// compare finds what to start and what to end.
func (p *plan) compare(wanted map[types.NamespacedName]named, running []Instance, runs map[types.UID]Instance) {
	taken := map[types.NamespacedName]bool{}
	for _, r := range running {
		taken[nameOf(r.Pod)] = true
		n, found := wanted[nameOf(r.Pod)]
		switch {
		case r.Stopping:
		case !found || n.pod.UID != r.Pod.UID:
			p.Stop = append(p.Stop, r.Pod.UID)
		case n.file != r.File:
			p.From[r.Pod.UID] = n.file
		}
	}
	for name, n := range wanted {
		if !taken[name] {
			p.Start = append(p.Start, Instance{File: n.file, Pod: n.pod})
		}
	}
	slices.Sort(p.Stop)
	slices.SortFunc(p.Start, func(a, b Instance) int { return cmp.Compare(a.File, b.File) })
}

func (p *plan) say(file, format string, args ...any) {
	p.Problems = append(p.Problems, Problem{File: file, Message: fmt.Sprintf(format, args...)})
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
