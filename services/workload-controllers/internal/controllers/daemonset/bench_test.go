package daemonset

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkPass decides over a DaemonSet on 5,000 nodes with nothing to do.
func BenchmarkPass(b *testing.B) {
	const nodes = 5000
	in := inputOf(newSet(), alike(runs, nodes))
	for i := range nodes {
		in.Pods = append(in.Pods, newPod(fmt.Sprint("p", i), fmt.Sprint("n", i+1), "agent:2"))
	}
	in.DaemonSet.Status = Decide(in).Status
	b.ReportAllocs()
	for b.Loop() {
		if plan := Decide(in); plan.WriteStatus || len(plan.Create)+len(plan.Delete) > 0 {
			b.Fatal(text(plan))
		}
	}
}

// BenchmarkNodeChange lets a node of 5,000 change that 50 DaemonSets run on: a label that they do not ask for.
func BenchmarkNodeChange(b *testing.B) {
	p := NewPlacement()
	for i := range 5000 {
		p.Put(newNode(fmt.Sprint("n", i)))
	}
	for i := range 50 {
		set := newSet()
		set.Name, set.UID = fmt.Sprint("agent-", i), types.UID(fmt.Sprint("agent-", i))
		p.Of(set)
	}
	node := func(value string) *corev1.Node {
		n := newNode("n1")
		n.Labels["seen"] = value
		return n
	}
	one, two := node("1"), node("2")
	b.ReportAllocs()
	for b.Loop() {
		if len(p.Put(one))+len(p.Put(two)) > 0 {
			b.Fatal("a DaemonSet wakes up")
		}
	}
}
