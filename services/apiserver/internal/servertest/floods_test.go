package servertest_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/batch"
	"keelson.dev/kit/connections"
	"keelson.dev/services/apiserver/inproc"
	"keelson.dev/services/apiserver/internal/servertest"
)

// TestFloodsOfHTTP2: a client that asks and takes it back at once, again and again, has no more work done at a time
// than its connection may have requests, and one that begins a header and never ends it is cut off. Neither keeps
// others from being answered.
func TestFloodsOfHTTP2(t *testing.T) {
	s := servertest.Start(t)
	answers := func(t *testing.T) {
		if _, err := s.Client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			t.Errorf("another client meanwhile: %v", err)
		}
	}
	answers(t)
	t.Run("requests that are taken back", func(t *testing.T) {
		const (
			requests = 20_000
			allowed  = 2_000 // a connection may have fewer requests than that, of a few goroutines each
		)
		c := flood(t, s.Address())
		before, most := runtime.NumGoroutine(), 0
		for i := range requests {
			stream := uint32(2*i + 1)
			err := c.WriteHeaders(
				http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.question(), EndStream: true,
					EndHeaders: true},
			)
			if err == nil {
				err = c.WriteRSTStream(stream, http2.ErrCodeCancel)
			}
			most = max(most, runtime.NumGoroutine()-before)
			if err != nil {
				t.Logf("cut off after %d requests: %v", i, err)
				break
			}
		}
		answers(t)
		if most > allowed {
			t.Errorf("%d goroutines more", most)
		}
	})
	t.Run("a header without an end", func(t *testing.T) {
		const enough = 64 << 20
		c := flood(t, s.Address())
		err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.question(), EndStream: true})
		sent := 0
		more := bytes.Repeat(c.field("x-more", string(bytes.Repeat([]byte("z"), 200))), 80)
		for ; err == nil && sent < enough; sent += len(more) {
			err = c.WriteContinuation(1, false, more)
		}
		t.Logf("cut off after %d bytes: %v", sent, err)
		if err == nil {
			t.Errorf("%d bytes of one header were taken", sent)
		}
		answers(t)
	})
}

// TestSilentConnections: however many connections a client opens and says nothing on, the next client is let in, and
// the clients before stay.
func TestSilentConnections(t *testing.T) {
	const most, silent = 16, 100
	s := servertest.Start(t, func(c *inproc.Config) {
		c.Connections = connections.Limits{Unknown: most, Known: most}
	})
	before, err := s.Client.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{}, silent)
	for range silent {
		conn, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		go func() {
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				closed <- struct{}{}
			}
		}()
	}
	for range silent - most {
		<-closed
	}
	if _, err := s.As(t, "ann").CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); !apierrors.
		IsForbidden(err) {
		t.Errorf("who comes next is told %v", err)
	}
	name := s.Namespace(t, "beside-silence")
	for event := range before.ResultChan() {
		if of, ok := event.Object.(metav1.Object); ok && of.GetName() == name {
			return
		}
	}
	t.Error("the watch that was open before has ended")
}

// TestLargeObjectsKeepNobodyWaiting: while a client has large objects patched, in several batches at once and without
// an end, what another asks is answered before a whole batch is, again and again.
func TestLargeObjectsKeepNobodyWaiting(t *testing.T) {
	const objects, size, small = 16, 900_000, 32
	const requestTime = time.Minute // the server's, by the library's default
	s := servertest.Start(t)
	ns := s.Namespace(t, "large")
	maps := s.Client.CoreV1().ConfigMaps(ns)
	ann := s.As(t, "ann").CoreV1().ConfigMaps(ns)
	bind(t, s, ns, "edit", "ann")
	var items []batch.Request
	for i := range objects {
		create(t, maps, configMap(fmt.Sprint("m", i), map[string]string{"a": strings.Repeat("x", size)}))
		items = append(items, batch.Request{Method: http.MethodPatch, Accept: "application/json",
			ContentType: string(types.MergePatchType), Body: []byte(`{"data":{"b":"patched"}}`),
			Target: fmt.Sprintf("/api/v1/namespaces/%s/configmaps/m%d?dryRun=All", ns, i)})
	}
	if _, err := ann.Patch(t.Context(), "m0", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}); err != nil {
		t.Fatalf("ann may not patch: %v", err)
	}
	sender := exchangeAs(t, s, "ann")
	sender.together(t, items) // how large they are is known from now on
	var finished atomic.Int64
	var batches sync.WaitGroup
	enough := make(chan struct{})
	for range 4 {
		batches.Go(func() {
			for {
				began := time.Now()
				// On a machine that is slow itself, the server cuts a batch off when the time of a request is over.
				if _, err := sender.tryTogether(t.Context(), items); err == nil {
					finished.Add(1)
				} else if time.Since(began) < requestTime {
					t.Errorf("a batch of large objects: %v", err)
				}
				select {
				case <-enough:
					return
				default:
				}
			}
		})
	}
	for range small {
		if _, err := s.Client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			t.Errorf("another client meanwhile: %v", err)
		}
	}
	whole := finished.Load()
	close(enough)
	batches.Wait()
	if whole >= small {
		t.Errorf("%d small requests took as long as %d batches of %d large ones of another", small, whole, objects)
	}
}

// bind gives the user one of the roles that may list Pods, in the namespace, and returns when the server knows.
func bind(t *testing.T, s *servertest.Server, ns, role, name string) {
	t.Helper()
	if _, err := s.Client.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("binding: %v", err)
	}
	servertest.AwaitRight(t, s.Client, authorizationv1.SubjectAccessReviewSpec{User: name,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: "list", Resource: "pods"}})
}

// flooder is a client that says what no library would.
type flooder struct {
	*http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
}

// flood connects, and reads whatever comes so that the server never waits for it.
func flood(t *testing.T, address string) *flooder {
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	c := &flooder{Framer: http2.NewFramer(conn, conn)}
	c.encoder = hpack.NewEncoder(&c.block)
	c.encoder.SetMaxDynamicTableSize(0) // each block can be sent again
	if err := c.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	go drain(conn)
	return c
}

func drain(conn net.Conn) {
	buffer := make([]byte, 1<<16)
	for {
		if _, err := conn.Read(buffer); err != nil {
			return
		}
	}
}

// question is the header of a list of Namespaces.
func (c *flooder) question() []byte {
	c.block.Reset()
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "apiserver"},
		{":path", "/api/v1/namespaces"}, {"authorization", "Bearer token-" + servertest.Admin}} {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}) // a buffer takes all
	}
	return bytes.Clone(c.block.Bytes())
}

func (c *flooder) field(name, value string) []byte {
	c.block.Reset()
	_ = c.encoder.WriteField(hpack.HeaderField{Name: name, Value: value})
	return bytes.Clone(c.block.Bytes())
}
