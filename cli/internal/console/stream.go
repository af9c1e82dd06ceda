package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"keelson.dev/cli/internal/console/feed"
)

const (
	// writeLimit is how long a page may take to read what is sent to it. One that takes longer is dropped, and asks
	// again.
	writeLimit = 10 * time.Second
	// together is how long changes are collected that are sent together.
	together = 250 * time.Millisecond
	// sign is how often something is sent that shows that the stream is alive.
	sign = 15 * time.Second
	// mostRows is how many rows of a topic a page gets.
	mostRows = 2000
)

// events writes server-sent events.
type events struct {
	out  http.ResponseWriter
	rest *http.ResponseController
}

// begin begins a stream of events.
func begin(w http.ResponseWriter) events {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Connection", "close") // the limit of the last write would hold for what follows
	return events{out: w, rest: http.NewResponseController(w)}
}

// send sends one event, whose data is JSON and so has no line feed.
func (e events) send(name string, what any) error {
	data, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	return e.write(fmt.Sprintf("event: %s\ndata: %s\n\n", name, data))
}

// alive shows that the stream is alive.
func (e events) alive() error { return e.write(": alive\n\n") }

func (e events) write(text string) error {
	if err := e.rest.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return fmt.Errorf("limiting the time of an event: %w", err)
	}
	if _, err := e.out.Write([]byte(text)); err != nil {
		return err
	}
	return e.rest.Flush()
}

// stream sends what changes of the topics that a page names, until the page leaves.
func (c *Console) stream(w http.ResponseWriter, r *http.Request) {
	names := strings.Split(r.URL.Query().Get("topics"), ",")
	for _, name := range names {
		if c.hub.Topic(name) == nil {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("topics: %q is none", name))
			return
		}
	}
	free, taken := c.streams.take(w)
	if !taken {
		return
	}
	defer free()
	news := make(chan struct{}, 1)
	wake := func() {
		select {
		case news <- struct{}{}:
		default: // it is awake
		}
	}
	var readers []*feed.Reader
	for _, name := range names {
		reader := c.hub.Topic(name).Follow(r.URL.Query().Get("namespace"), mostRows, wake)
		defer reader.Leave()
		readers = append(readers, reader)
	}
	follow(r.Context(), begin(w), readers, news)
}

// follow sends what is new of the readers until ctx ends, or the page does not read.
func follow(ctx context.Context, out events, readers []*feed.Reader, news <-chan struct{}) {
	alive := time.NewTicker(sign)
	defer alive.Stop()
	for {
		for _, reader := range readers {
			change, changed := reader.Next()
			if !changed {
				continue
			}
			if out.send("change", change) != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-alive.C:
			if out.alive() != nil {
				return
			}
		case <-news:
			select {
			case <-ctx.Done():
				return
			case <-time.After(together):
			}
		}
	}
}
