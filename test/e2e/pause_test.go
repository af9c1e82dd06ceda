package e2e

import (
	"context"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/subprocess"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

// TestPausedLeaderWritesNothing stops the leader of each daemon that is elected by SIGSTOP until a copy leads, kills
// the copy, and lets the first one go on with work at hand. What it then writes it writes under its own Lease again,
// not under the copy's.
func TestPausedLeaderWritesNothing(t *testing.T) {
	m := processes.Shared(t, 0)
	client, err := kubernetes.NewForConfig(m.Admin())
	if err != nil {
		t.Fatal(err)
	}
	prepareWork(t, client)
	clearAway(&scenario.World{TB: t, Client: client}, work)
	for _, test := range []struct {
		daemon mesh.Daemon
		lease  string
		ask    func(*testing.T, kubernetes.Interface)
		done   func(context.Context, kubernetes.Interface) (bool, error)
	}{
		{mesh.Scheduler, "scheduler.default-scheduler", askForPlacement, placed},
		{mesh.WorkloadControllers, "workload-controllers.deployment", askForRollout, rolledOut},
		{mesh.PodGC, "podgc.owners", askForCascade, cascaded},
	} {
		t.Run(string(test.daemon), func(t *testing.T) {
			t.Parallel()
			first := awaitHolder(t, client, test.lease, "", time.Minute)
			leader := m.Of(t, test.daemon)[0]
			deputy := m.StartCopy(t, test.daemon)
			awaitRenewals(t, client, 3, test.lease)

			signal(t, leader, syscall.SIGSTOP)
			t.Cleanup(func() { signal(t, leader, syscall.SIGCONT) })
			awaitHolder(t, client, test.lease, first, takeover)
			if err := subprocess.Kill(context.Background(), deputy); err != nil {
				t.Fatal(err)
			}
			test.ask(t, client)
			signal(t, leader, syscall.SIGCONT)
			err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, takeover, true,
				func(ctx context.Context) (bool, error) {
					return test.done(ctx, client)
				})
			if err != nil {
				t.Fatalf("the work was never done: %v", err)
			}
			if holder := awaitHolder(t, client, test.lease, "", time.Minute); holder != first {
				t.Errorf("who woke up wrote while %s held the Lease", holder)
			}
		})
	}
}

func signal(t testing.TB, p subprocess.Process, s syscall.Signal) {
	t.Helper()
	if err := p.Signal(s); err != nil {
		t.Errorf("signalling %s: %v", p.Name, err)
	}
}

const work = "pause"

// prepareWork makes a namespace, a node without an agent, and an owner with its dependent.
func prepareWork(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx, core := t.Context(), client.CoreV1()
	if _, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := standIn(ctx, core.Nodes(), work, "4", nil); err != nil {
		t.Fatal(err)
	}
	owner, err := core.ConfigMaps(work).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dependent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "dependent",
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
		}}}
	if _, err := core.ConfigMaps(work).Create(ctx, dependent, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func askForPlacement(t *testing.T, client kubernetes.Interface) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod"}, Spec: corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{Name: "c", Image: "i"}},
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			// The namespace's account may not be there yet.
			_, err := client.CoreV1().Pods(work).Create(ctx, pod, metav1.CreateOptions{})
			if apierrors.IsForbidden(err) {
				return false, nil
			}
			return err == nil, err
		})
	if err != nil {
		t.Fatal(err)
	}
}

func placed(ctx context.Context, client kubernetes.Interface) (bool, error) {
	pod, err := client.CoreV1().Pods(work).Get(ctx, "pod", metav1.GetOptions{})
	return err == nil && pod.Spec.NodeName != "", err
}

func askForRollout(t *testing.T, client kubernetes.Interface) {
	labels := map[string]string{"app": work}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "deployment"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		},
	}}
	if _, err := client.AppsV1().Deployments(work).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func rolledOut(ctx context.Context, client kubernetes.Interface) (bool, error) {
	sets, err := client.AppsV1().ReplicaSets(work).List(ctx, metav1.ListOptions{})
	return err == nil && len(sets.Items) > 0, err
}

func askForCascade(t *testing.T, client kubernetes.Interface) {
	if err := client.CoreV1().ConfigMaps(work).Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func cascaded(ctx context.Context, client kubernetes.Interface) (bool, error) {
	_, err := client.CoreV1().ConfigMaps(work).Get(ctx, "dependent", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}
