package scenario

import (
	"strings"
	"testing"

	"keelson.dev/test/mesh"
)

// CordonAndDrain marks, closes, empties and opens a node as an administrator does. The Pods of a Deployment leave it,
// and when there is no other wait until it is open again; a bare Pod and one of a DaemonSet need more words.
//
// SAF-023
func CordonAndDrain(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	app, node := "moved-"+w.Namespace, m.Nodes()[0]
	w.KubectlWith(strings.ReplaceAll(web(2, HelloV1, ""), "web", app)+"---\n"+barePod("bare", HelloV1)+"---\n"+
		agent("agent", HelloV1, ""), "apply", "-f", "-")
	w.AwaitAvailable(app, 2)
	w.Kubectl("wait", "pod/bare", "--for=condition=Ready", "--timeout=90s")

	// Keys of its own: others mark nodes at the same time. No Pod minds a taint of that effect.
	key := "tests.keelson.dev/" + w.Namespace
	taint, name := []string{"taint", "node", node}, "node/"+node
	w.says(name+" tainted", append(taint, key+"=a:PreferNoSchedule")...)
	w.refuses(
		"",
		[]string{"already has " + key + " taint(s) with same effect(s) and --overwrite is false"},
		append(taint,
			key+"=b:PreferNoSchedule")...)
	w.says(name+" modified", append(taint, key+"=b:PreferNoSchedule", "--overwrite")...)
	w.awaitOutput([]string{"Taints:", key + "=b:PreferNoSchedule"}, "describe", "node", node)
	w.says(name+" untainted", append(taint, key+"-")...)
	w.refuses("", []string{`taint "` + key + `" not found`}, append(taint, key+"-")...)
	w.refuses("", []string{"invalid taint effect: Sometimes"}, append(taint, key+"=a:Sometimes")...)
	w.says(name+" labeled", "label", "node", node, key+"=a")
	w.says(name, "get", "nodes", "-l", key+"=a", "-o", "name")
	w.says(name+" unlabeled", "label", "node", node, key+"-")

	held := w.Pods("app=web")[0]
	on := held.Spec.NodeName
	defer w.TryKubectl("", "uncordon", on)
	w.says("node/"+on+" cordoned", "cordon", on)
	w.says("node/"+on+" already cordoned", "cordon", on)
	w.awaitOutput([]string{"Ready,SchedulingDisabled"}, "get", "node", on)
	bare := w.TryKubectl("", "drain", on, "--pod-selector=app=web")
	if bare.Code != 1 || !strings.Contains(bare.Stderr, "cannot delete Pods that declare no controller (use --force "+
		"to override): "+w.Namespace+"/bare") {
		t.Errorf("drain of a bare Pod: status %d, %s%s", bare.Code, bare.Stdout, bare.Stderr)
	}
	daemon := w.TryKubectl("", "drain", on, "--pod-selector=name=agent")
	if daemon.Code != 1 || !strings.Contains(daemon.Stderr, "cannot delete DaemonSet-managed Pods (use "+
		"--ignore-daemonsets to ignore): "+w.Namespace+"/agent-") {
		t.Errorf("drain of a DaemonSet's Pod: status %d, %s%s", daemon.Code, daemon.Stdout, daemon.Stderr)
	}
	was := activePodsByNode(w, app)[on]
	r := w.TryKubectl("", "drain", on, "--pod-selector=app="+app, "--timeout=90s")
	if r.Code != 0 || strings.Count(r.Stdout, "evicting pod "+w.Namespace+"/"+app+"-")+strings.Count(r.Stderr,
		"evicting pod "+w.Namespace+"/"+app+"-") != len(was) || !strings.Contains(r.Stdout, "node/"+on+" drained") {
		t.Errorf("drain of %d Pods: status %d, %s%s", len(was), r.Code, r.Stdout, r.Stderr)
	}
	w.Await("two Pods, none of them on the drained node", func() Answer {
		pods := activePodsByNode(w, app)
		n := 0
		for _, some := range pods {
			n += len(some)
		}
		if n != 2 || len(pods[on]) > 0 {
			return Sawf("%d Pods, %d of them there", n, len(pods[on]))
		}
		return ""
	})
	if len(m.Nodes()) == 1 {
		w.awaitOutput([]string{"0/1 nodes are available: 1 node(s) were unschedulable."}, "get", "events",
			"--field-selector=reason=FailedScheduling")
	}
	w.says("node/"+on+" uncordoned", "uncordon", on)
	w.says("node/"+on+" already uncordoned", "uncordon", on)
	w.AwaitAvailable(app, 2)
}
