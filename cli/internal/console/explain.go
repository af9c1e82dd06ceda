package console

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"keelson.dev/kit/daemon"
)

// explainLimit is how long an explanation may take.
const explainLimit = 20 * time.Second

// about says what this console shows.
func (c *Console) about(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]string{"version": daemon.Version(), "namespace": c.config.Namespace})
}

// explain answers what keel explain says of an object.
func (c *Console) explain(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	kind, known := explained[query.Get("topic")]
	switch {
	case !known:
		refuse(w, http.StatusBadRequest, fmt.Sprintf("topic: %q is none that is explained", query.Get("topic")))
		return
	case query.Get("name") == "":
		refuse(w, http.StatusBadRequest, "name: is missing")
		return
	}
	free, taken := c.explains.take(w)
	if !taken {
		return
	}
	defer free()
	ctx, cancel := context.WithTimeout(r.Context(), explainLimit)
	defer cancel()
	account, err := c.config.Explain(ctx, kind, query.Get("namespace"), query.Get("name"))
	if err != nil {
		refuse(w, http.StatusBadGateway, err.Error())
		return
	}
	var text bytes.Buffer
	account.Write(&text)
	answer(w, http.StatusOK, map[string]string{"text": text.String()})
}
