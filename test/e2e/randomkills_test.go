package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/podview"
	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

var (
	kills    = flag.Int("kills", 0, "how many times TestRandomKills kills something; it is left out without")
	killSeed = flag.Uint64("kill-seed", 0, "what TestRandomKills chooses by; 0 is another one each time")
)

// killWithin is how long after the begin of a start or a stop something is killed at the latest: about as long as each
// takes on a busy machine.
const killWithin = 800 * time.Millisecond

// everything is the victim that is all others at once, as when a machine loses its power.
const everything = "everything"

// TestRandomKills kills the nodeagent, containerd, the shims of the containers or everything at random moments
// while a Pod starts, and again while it stops. After every kill, the Pod gets ready and is removed, no container
// ever has two running instances, the API reports exactly the running containers, and nothing is left.
//
// SAF-197 SAF-198
func TestRandomKills(t *testing.T) {
	if *kills == 0 {
		t.Skip("make kills runs this: it takes minutes")
	}
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-kill-seed=%d", seed)
	m := processes.New(t, 1)
	k := &killer{World: scenario.In(t, m), mesh: m, random: rand.New(rand.NewPCG(seed, 0)),
		runtime: m.Runtime(t), socket: filepath.Join(m.DataDir, "nodes", "node-1", "containerd.sock")}
	var watching sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	watching.Go(func() { k.watch(ctx) })
	for i := 0; i < *kills; i += 2 {
		k.life(fmt.Sprint("pod-", i/2))
	}
	stop()
	watching.Wait()
	for _, twice := range k.twice {
		t.Error(twice)
	}
	expectNothingLeft(t, m)
}

// killer is a Pod's worst neighbour.
type killer struct {
	*scenario.World
	mesh    *processes.Mesh
	random  *rand.Rand
	runtime criv1.RuntimeServiceClient
	socket  string
	// twice lists containers of which two instances ran at the same time; only the watch uses it until it has
	// ended.
	twice []string
}

// life takes a Pod from its creation to its end, with a kill in the middle of each.
func (k *killer) life(name string) {
	pods := k.Client.CoreV1().Pods(k.Namespace)
	_, err := pods.Create(k.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(2)),
			Containers: []corev1.Container{{Name: "one", Image: scenario.HelloV1},
				{Name: "two", Image: scenario.HelloV1, Args: []string{"--http="}}},
		},
	}, metav1.CreateOptions{})
	must(k, err)
	killed := k.killOne()
	k.Await(name+" to be ready and told of as it is after the death of "+killed, func() scenario.Answer {
		pod, err := pods.Get(k.Context(), name, metav1.GetOptions{})
		if err != nil || !podview.IsReady(pod) {
			return scenario.Sawf("it is not ready; %v", err)
		}
		return k.differs(pod)
	})
	must(k, pods.Delete(k.Context(), name, metav1.DeleteOptions{}))
	killed = k.killOne()
	k.Await(name+" to be gone after the death of "+killed, func() scenario.Answer {
		if _, err := pods.Get(k.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return scenario.Sawf("it is there; %v", err)
		}
		return ""
	})
}

// killOne kills something after a random time, starts what keel starts, and says what it was.
func (k *killer) killOne() (victim string) {
	victims := []string{string(mesh.NodeAgent), "containerd", "shims", everything}
	victim = victims[k.random.IntN(len(victims))]
	<-time.After(time.Duration(k.random.Int64N(int64(killWithin))))
	if victim == string(mesh.NodeAgent) || victim == everything {
		k.mesh.Kill(k, mesh.NodeAgent)
	}
	if victim == "containerd" || victim == everything {
		for _, p := range k.mesh.Of(k, "containerd-node-1") {
			must(k, subprocess.Kill(k.Context(), p))
		}
	}
	if victim == "shims" || victim == everything {
		killShims(k, k.socket) // there may be none yet
	}
	k.mesh.Start(k, mesh.NodeAgent)
	return victim
}

// differs says in what the API and the runtime differ about the containers that run; "" if in nothing.
func (k *killer) differs(pod *corev1.Pod) scenario.Answer {
	running, err := k.running(k.Context(), map[string]string{"io.kubernetes.pod.uid": string(pod.UID)})
	if err != nil {
		return scenario.Saw(err.Error())
	}
	if len(running) != len(pod.Status.ContainerStatuses) {
		return scenario.Sawf("%d containers run", len(running))
	}
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if got := running[string(pod.UID)+"/"+s.Name]; len(got) != 1 || s.ContainerID != "containerd://"+got[0] {
			return scenario.Sawf("of %s %v run, the API says %s", s.Name, got, s.ContainerID)
		}
	}
	return ""
}

// running returns the IDs of the instances that run, by Pod UID and container name.
func (k *killer) running(ctx context.Context, labels map[string]string) (map[string][]string, error) {
	list, err := k.runtime.ListContainers(ctx, &criv1.ListContainersRequest{Filter: &criv1.ContainerFilter{
		LabelSelector: labels, State: &criv1.ContainerStateValue{State: criv1.ContainerState_CONTAINER_RUNNING}}})
	if err != nil {
		return nil, err
	}
	running := map[string][]string{}
	for _, c := range list.Containers {
		key := c.Labels["io.kubernetes.pod.uid"] + "/" + c.Metadata.Name
		running[key] = append(running[key], c.Id)
	}
	return running, nil
}

// watch looks many times per second whether a container runs twice. It sees nothing while containerd is down.
func (k *killer) watch(ctx context.Context) {
	for {
		running, _ := k.running(ctx, nil)
		for container, ids := range running {
			if len(ids) > 1 {
				k.twice = append(k.twice, container+" runs as "+strings.Join(ids, " and "))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
