package podresources

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/utils/cpuset"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/deviceplugin"
	"keelson.dev/services/nodeagent/internal/plainfile"
	"keelson.dev/services/nodeagent/internal/pluginsocket"
)

func podOf(uid, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Name: name, Namespace: "default"},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "i"},
				{Name: "s", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}},
			Containers: []corev1.Container{{Name: "c"}}}}
}

// serve returns a client of a Server that reports two Pods.
func serve(t *testing.T) api.PodResourcesListerClient {
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 120)) // longer than an address may be
	s := New(Config{Root: dir, Log: zap.NewNop(),
		Pods: func() []*corev1.Pod { return []*corev1.Pod{podOf("u2", "two"), podOf("u1", "one")} },
		Devices: func(uid types.UID) deviceplugin.Allocation {
			return map[types.UID]deviceplugin.Allocation{"u1": {"i": {"x.io/led": {"a"}},
				"c": {"x.io/led": {"a", "b"}, "x.io/disk": {"d"}}}}[uid]
		},
		AllDevices: func() deviceplugin.Devices { return deviceplugin.Devices{"x.io/led": {"a", "b", "c"}} },
		CPUs: func(uid types.UID, container string) cpuset.CPUSet {
			return map[string]cpuset.CPUSet{"u1/i": cpuset.New(1, 2), "u1/s": cpuset.New(2),
				"u1/c": cpuset.New(1)}[string(uid)+"/"+container]
		},
		AllCPUs: func() cpuset.CPUSet { return cpuset.New(1, 2, 3) }})
	if err := os.MkdirAll(s.Dir(), 0o750); err != nil {
		t.Fatal(err)
	}
	// A killed agent has left its socket.
	if _, err := pluginsocket.Listen(s.Dir(), socketName); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	conn, err := pluginsocket.Connect(plainfile.Root(dir), filepath.Join(s.Dir(), socketName))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	client := api.NewPodResourcesListerClient(conn)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		_, err := client.Get(t.Context(), &api.GetPodResourcesRequest{})
		if status.Code(err) == codes.NotFound {
			return client
		}
		if time.Since(began) > 90*time.Second {
			t.Fatalf("the service does not answer: %v", err)
		}
	}
}

func TestServe(t *testing.T) {
	client := serve(t)
	device := func(resource, id string) *api.ContainerDevices {
		return &api.ContainerDevices{ResourceName: resource, DeviceIds: []string{id}}
	}
	one := &api.PodResources{Name: "one", Namespace: "default", Containers: []*api.ContainerResources{
		{Name: "s", CpuIds: []int64{2}}, {Name: "c", CpuIds: []int64{1}, Devices: []*api.ContainerDevices{
			device("x.io/disk", "d"), device("x.io/led", "a"), device("x.io/led", "b")}}}}
	two := &api.PodResources{Name: "two", Namespace: "default",
		Containers: []*api.ContainerResources{{Name: "s"}, {Name: "c"}}}
	same := func(what string, got, want proto.Message, err error) {
		t.Helper()
		if err != nil || !proto.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
	}
	list, err := client.List(t.Context(), &api.ListPodResourcesRequest{})
	same("List", list, &api.ListPodResourcesResponse{PodResources: []*api.PodResources{one, two}}, err)
	got, err := client.Get(t.Context(), &api.GetPodResourcesRequest{PodName: "one", PodNamespace: "default"})
	same("Get", got, &api.GetPodResourcesResponse{PodResources: one}, err)
	all, err := client.GetAllocatableResources(t.Context(), &api.AllocatableResourcesRequest{})
	lights := []*api.ContainerDevices{device("x.io/led", "a"), device("x.io/led", "b"), device("x.io/led", "c")}
	same("GetAllocatableResources", all,
		&api.AllocatableResourcesResponse{CpuIds: []int64{1, 2, 3}, Devices: lights}, err)
	for _, in := range []*api.GetPodResourcesRequest{{PodName: "one"}, {PodName: "three", PodNamespace: "default"}} {
		_, err := client.Get(t.Context(), in)
		want := "pod " + in.GetPodName() + " in namespace " + in.GetPodNamespace() + " not found"
		if status.Code(err) != codes.NotFound || status.Convert(err).Message() != want {
			t.Errorf("Get %v: %v", in, err)
		}
	}
}

// A client that calls without a pause is refused, and served again later.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		answered := func() (n int) {
			for range 2 * callsAtOnce {
				_, err := s.limited(t.Context(), nil, nil, func(context.Context, any) (any, error) { return nil, nil })
				if err == nil {
					n++
				} else if status.Code(err) != codes.ResourceExhausted {
					t.Error(err)
				}
			}
			return n
		}
		if n := answered(); n != callsAtOnce {
			t.Errorf("%d calls at once are answered, not %d", n, callsAtOnce)
		}
		time.Sleep(5 * time.Second / callsPerSecond)
		if n := answered(); n != 5 {
			t.Errorf("%d calls are answered after a pause for 5", n)
		}
	})
}
