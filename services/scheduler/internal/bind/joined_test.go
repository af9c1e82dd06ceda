package bind

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"keelson.dev/kit/batch"
)

// joinedServer is an apiserver that takes batches of bindings and loses some answers, by the names of the Pods.
type joinedServer struct {
	mu      sync.Mutex
	bound   map[string]int
	batches []int
}

// bind does what the Pod's name says. It returns no text where the answer is lost.
func (s *joinedServer) bind(target string) (status int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.Split(target, "/")[6]
	switch {
	case strings.HasPrefix(name, "refused"):
		return http.StatusConflict,
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`
	case strings.HasPrefix(name, "broken"):
		return http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`
	case strings.HasPrefix(name, "skipped"):
		return 0, ""
	}
	s.bound[name]++
	if strings.HasPrefix(name, "lost") {
		return 0, ""
	}
	return http.StatusCreated, `{"kind":"Status","apiVersion":"v1","status":"Success","code":201}`
}

func (s *joinedServer) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(10 * time.Millisecond)
	answer := func(status int, kind, text string) *http.Response {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Request: r,
			Body: io.NopCloser(strings.NewReader(text))}
	}
	const json = "application/json"
	switch {
	case r.Method == http.MethodGet:
		s.mu.Lock()
		defer s.mu.Unlock()
		name, node := strings.Split(r.URL.Path, "/")[6], ""
		if s.bound[name] > 0 {
			node = "n"
		}
		return answer(200, json, fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"uid":"uid-%s"},`+
			`"spec":{"nodeName":%q}}`, name, name, node)), nil
	case r.URL.Path != batch.Path:
		if status, text := s.bind(r.URL.Path); status != 0 {
			return answer(status, json, text), nil
		}
		return nil, io.ErrUnexpectedEOF
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	items, err := batch.ReadRequests(body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.batches = append(s.batches, len(items))
	s.mu.Unlock()
	var answers []byte
	for i, item := range items {
		if status, text := s.bind(item.Target); status != 0 {
			answers = batch.AppendAnswer(answers, batch.Answer{Item: i, Status: status,
				Header: http.Header{"Content-Type": {json}}, Body: []byte(text)})
		}
	}
	return answer(200, batch.ContentType, string(answers)), nil
}

// POD-026, SAF-121: of bindings that go together each has its own outcome. Where an answer is lost, the Pod itself says
// what became of it, and nothing is written twice.
func TestJoinedBindings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &joinedServer{bound: map[string]int{}}
		client, err := kubernetes.NewForConfig(batch.Over(&rest.Config{Host: "http://apiserver", Transport: s, QPS: -1},
			func(context.Context) error { return nil }))
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		outcomes := map[string]error{}
		b := NewBinder(client.CoreV1(), nil, &Terms{}, func(o Outcome) {
			mu.Lock()
			defer mu.Unlock()
			outcomes[o.Pod.Name] = o.Err
		})
		kinds := []string{"good", "refused", "broken", "lost", "skipped", "good"}
		const pods = 200
		for i := range pods {
			b.Bind(t.Context(), Binding{Pod: pod(fmt.Sprint(kinds[i%len(kinds)], i)), Node: "n"})
		}
		b.Wait()
		synctest.Wait()
		most := 0
		for _, n := range s.batches {
			most = max(most, n)
		}
		if len(outcomes) != pods || most < 20 {
			t.Errorf("%d outcomes, batches of %v", len(outcomes), s.batches)
		}
		for name, err := range outcomes {
			taken := strings.HasPrefix(name, "good") || strings.HasPrefix(name, "lost")
			if (err == nil) != taken || taken && s.bound[name] != 1 || !taken && s.bound[name] != 0 {
				t.Errorf("%s: %v, bound %d times", name, err, s.bound[name])
			}
		}
	})
}
