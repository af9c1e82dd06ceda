package bench

import (
	"context"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
)

// BenchmarkPriorityAndFairness compares what the create of a Pod costs an apiserver that has priority and fairness with
// what it costs one that has not. Both are asked in turn, request by request, so that what else the machine does falls
// on both alike: by a tenant's account, which has a seat for each request, and by a master, who is exempt. The figure
// is the median of the ratios of all rounds. Before that no client asks for anything.
func BenchmarkPriorityAndFairness(b *testing.B) {
	on, off := newFlowControlled(b, "true"), newFlowControlled(b, "false")
	for _, idle := range []struct {
		name string
		*flowControlled
	}{{"off", off}, {"on", on}, {"off-again", off}, {"on-again", on}} {
		b.Run("idle-"+idle.name, func(b *testing.B) { reportIdle(b, idle.meter) })
	}
	for _, who := range []struct {
		name string
		of   func(*flowControlled) kubernetes.Interface
	}{
		{"account", func(f *flowControlled) kubernetes.Interface { return f.account }},
		{"master", func(f *flowControlled) kubernetes.Interface { return f.master }},
	} {
		b.Run(who.name, func(b *testing.B) {
			const rounds = 31
			var ratios []float64
			var with, without time.Duration
			for round := range rounds {
				usedOn, usedOff := createBoth(b, on, off, who.of)
				if round == 0 {
					continue // both are warm from now on
				}
				with, without = with+usedOn, without+usedOff
				ratios = append(ratios, float64(usedOn)/float64(usedOff))
			}
			slices.Sort(ratios)
			perOp := func(d time.Duration) float64 {
				return float64(d.Microseconds()) / 1000 / float64(len(ratios)*flowControlledPods)
			}
			b.ReportMetric(perOp(with), "on-cpu-ms/op")
			b.ReportMetric(perOp(without), "off-cpu-ms/op")
			b.ReportMetric(float64(with)/float64(without), "ratio-of-sums")
			b.ReportMetric(ratios[len(ratios)/4], "lower-quartile-ratio")
			b.ReportMetric(ratios[len(ratios)/2], "median-ratio")
			b.ReportMetric(ratios[len(ratios)*3/4], "upper-quartile-ratio")
		})
	}
}

// flowControlledPods is how many Pods a round creates on each apiserver.
const flowControlledPods = 1000

// flowControlled is an apiserver with or without priority and fairness, and the requests to it.
type flowControlled struct {
	meter           *meter
	account, master kubernetes.Interface
}

func newFlowControlled(b *testing.B, enabled string) *flowControlled {
	b.Helper()
	m := processes.New(b, 0)
	master := connect(b, m)
	for _, d := range []mesh.Daemon{mesh.Scheduler, mesh.WorkloadControllers, mesh.PodGC} {
		m.Kill(b, d)
	}
	_, err := master.RbacV1().RoleBindings(namespace).Create(b.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "edits"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "default"}},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	token, err := master.CoreV1().ServiceAccounts(namespace).CreateToken(b.Context(), "default",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	m.Restart(b, mesh.APIServer, "--enable-priority-and-fairness="+enabled)
	config := m.Admin()
	config.TLSClientConfig.CertData, config.TLSClientConfig.CertFile = nil, ""
	config.TLSClientConfig.KeyData, config.TLSClientConfig.KeyFile = nil, ""
	config.BearerToken = token.Status.Token
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	account, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	f := &flowControlled{meter: newMeter(b, m, mesh.APIServer), account: account, master: master}
	await(b, "the account's rights", func() (string, error) {
		if _, err := account.CoreV1().Pods(namespace).List(b.Context(), metav1.ListOptions{}); err != nil {
			return err.Error(), nil //nolint:nilerr // Not being there yet is the answer.
		}
		return "", nil
	})
	return f
}

// createBoth is what Pods take of both apiservers, and takes them away again.
func createBoth(b *testing.B, on, off *flowControlled, as func(*flowControlled) kubernetes.Interface) (usedOn,
	usedOff time.Duration) {
	b.Helper()
	on.meter.settle()
	off.meter.settle()
	beforeOn, beforeOff := on.meter.now().sum(), off.meter.now().sum()
	creates := []request{createPods(b, as(on)), createPods(b, as(off))}
	each(b, len(creates)*flowControlledPods, func(ctx context.Context, i int) error {
		return creates[i%len(creates)](ctx, i/len(creates))
	})
	usedOn, usedOff = on.meter.now().sum()-beforeOn, off.meter.now().sum()-beforeOff
	now := int64(0)
	for _, f := range []*flowControlled{on, off} {
		if err := f.master.CoreV1().Pods(namespace).DeleteCollection(b.Context(),
			metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	return usedOn, usedOff
}
