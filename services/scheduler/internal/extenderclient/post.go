package extenderclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"keelson.dev/kit/election"
	"keelson.dev/services/scheduler/internal/bind"
	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/extender"
)

const (
	// readTimeout bounds the reading of a Pod.
	readTimeout = 10 * time.Second
	// maxAnswer bounds the body of an answer: whole nodes of a large cluster fit in.
	maxAnswer = 32 << 20
)

// Clients returns the connection to each extender. Over it only a leader calls: an extender may keep what it answers.
func Clients(extenders []schedulerv1.Extender) ([]*http.Client, error) {
	var clients []*http.Client
	for i := range extenders {
		client, err := rest.HTTPClientFor(election.Fence(&rest.Config{
			TLSClientConfig: config.TLSOf(extenders[i].TLSConfig)}))
		if err != nil {
			return nil, fmt.Errorf("extenders[%d].tlsConfig: %w", i, err)
		}
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		clients = append(clients, client)
	}
	return clients, nil
}

// failure says which extender failed at what.
func (a *Asker) failure(i int, what string, err error) error {
	name := a.extenders[i].URLPrefix
	if u, parseErr := url.Parse(name); parseErr == nil {
		name = u.Redacted()
	}
	return fmt.Errorf("extender %s failed to %s: %w", name, what, err)
}

// post sends args to a verb of an extender and decodes the answer.
func (a *Asker) post(ctx context.Context, i int, verb string, args, result any) error {
	e := &a.extenders[i]
	ctx, cancel := context.WithTimeout(ctx, e.HTTPTimeout.Duration)
	defer cancel()
	body, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("encoding the question: %w", err)
	}
	to := strings.TrimRight(e.URLPrefix, "/") + "/" + strings.TrimLeft(verb, "/")
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.clients[i].Do(request)
	if err != nil {
		return unanswered(err, e)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", extender.Clean(response.Status))
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return unanswered(err, e)
	case len(data) > maxAnswer:
		return fmt.Errorf("its answer is longer than %d MiB", maxAnswer>>20)
	}
	if err := json.Unmarshal(data, result); err != nil {
		return errors.New("its answer cannot be read: " + extender.Clean(err.Error()))
	}
	return nil
}

// unanswered shortens the error of a request without an answer.
func unanswered(err error, e *schedulerv1.Extender) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s: %w", e.HTTPTimeout.Duration, context.DeadlineExceeded)
	}
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// Binds reports whether an extender binds the Pod.
func (a *Asker) Binds(p *corev1.Pod) bool {
	_, ok := extender.Binder(a.extenders, p)
	return ok
}

// Bind lets the extender bind the Pod that binds it. The error is bind.ErrRefused where it said that it does not, and
// bind.ErrPassed where an ignorable one cannot.
func (a *Asker) Bind(ctx context.Context, p *corev1.Pod, node string) error {
	i, _ := extender.Binder(a.extenders, p)
	e := &a.extenders[i]
	var result extenderv1.ExtenderBindingResult
	err := a.post(ctx, i, e.BindVerb, &extenderv1.ExtenderBindingArgs{PodName: p.Name, PodNamespace: p.Namespace,
		PodUID: p.UID, Node: node}, &result)
	if err == nil && result.Error != "" {
		err = fmt.Errorf("%w: it says: %s", bind.ErrRefused, extender.Clean(result.Error))
	}
	if err == nil {
		return nil
	}
	err = a.failure(i, "bind", err)
	if a.ignore(e.Ignorable, p, err) {
		return fmt.Errorf("%w: %w", bind.ErrPassed, err)
	}
	return err
}
