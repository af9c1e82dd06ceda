package aggregation

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"keelson.dev/kit/contained"
)

const (
	// patience is how long who asks waits for servers. What they answer later is there for the next.
	patience = time.Second
	// readingDocuments is what breaks off where that does.
	readingDocuments = "reading the OpenAPI documents of an APIService"
)

// source is a server for as long as it answers: when it begins again, all that it said is forgotten.
type source struct {
	*extension
	begun uint64
}

// kept are the answers of servers to one question. They are asked only for a request.
type kept[T any] struct {
	path string
	// read makes of an answer what is kept of it.
	read func(of schema.GroupVersion, code int, body []byte) (T, error)
	log  *zap.Logger
	// objects tell where the servers are.
	objects Objects

	mu      sync.Mutex
	answers map[source]*answer[T]
	// decoding is held by who reads an answer, which can take many times its size.
	decoding sync.Mutex
}

// answer is what one server says. All but the channel and the time of asking belongs to who asks while one does.
type answer[T any] struct {
	asked time.Time
	// asking is closed when the server has been asked; nil while it is not being asked.
	asking chan struct{}
	failed string

	known bool
	value T
	etag  string
	sum   [sha256.Size]byte
}

// refresh asks those of the sources that are due, and waits for a moment.
func (k *kept[T]) refresh(ctx context.Context, sources []source) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, asking := range k.begin(sources) {
		select {
		case <-asking:
		case <-ctx.Done():
			return
		}
	}
}

// of are the known answers of the sources, in their order.
func (k *kept[T]) of(sources []source) []T {
	k.mu.Lock()
	defer k.mu.Unlock()
	var known []T
	for _, s := range sources {
		if a := k.answers[s]; a != nil && a.known {
			known = append(known, a.value)
		}
	}
	return known
}

// begin asks the sources that are due, and forgets all others. It returns what closes when those that are being asked
// have answered.
func (k *kept[T]) begin(sources []source) []chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	last := k.answers
	k.answers = map[source]*answer[T]{}
	var waiting []chan struct{}
	for _, s := range sources {
		a := last[s]
		if a == nil {
			a = &answer[T]{}
		}
		k.answers[s] = a
		if now := time.Now(); a.asking == nil && decideDue(now, a.asked, a.failed != "") {
			a.asked, a.asking = now, make(chan struct{})
			contained.Go(readingDocuments, func() { k.ask(s, a) }, nil)
		}
		if a.asking != nil {
			waiting = append(waiting, a.asking)
		}
	}
	return waiting
}

// expire has the next request ask a server again.
func (k *kept[T]) expire(e *extension) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for s, a := range k.answers {
		if s.extension == e {
			a.asked = time.Time{}
		}
	}
}

// ask asks one server and keeps what it says. One that fails keeps what it said before.
func (k *kept[T]) ask(s source, a *answer[T]) {
	k.mu.Lock()
	next := answer[T]{known: a.known, value: a.value, etag: a.etag, sum: a.sum}
	k.mu.Unlock()
	err := fmt.Errorf("%s broke off", readingDocuments)
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		failed := ""
		if err != nil {
			failed = err.Error()
		} else {
			a.known, a.value, a.etag, a.sum = true, next.value, next.etag, next.sum
		}
		if failed != "" && failed != a.failed {
			k.log.Warn(readingDocuments, zap.String("name", s.name), zap.String("path", k.path), zap.Error(err))
		}
		a.failed = failed
		close(a.asking)
		a.asking = nil
	}()
	err = k.update(s, &next)
}

// update brings an answer up to what the server says now.
func (k *kept[T]) update(s source, a *answer[T]) error {
	header := http.Header{"Accept": {"application/json"}}
	if a.etag != "" {
		header.Set("If-None-Match", a.etag)
	}
	got, err := s.document(context.Background(), k.objects, &url.URL{Path: k.path}, itself, header)
	if err != nil {
		return err
	}
	if got.code == http.StatusNotModified && a.etag != "" {
		return nil
	}
	sum := sha256.Sum256(got.body)
	if got.code == http.StatusOK && a.known && sum == a.sum {
		return nil
	}
	k.decoding.Lock()
	defer k.decoding.Unlock()
	value, err := k.read(s.version(), got.code, got.body)
	if err != nil {
		return err
	}
	a.value, a.etag, a.sum = value, got.header.Get("Etag"), sum
	return nil
}
