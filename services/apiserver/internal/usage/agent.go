package usage

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"keelson.dev/services/apiserver/internal/nodeproxy"
)

// FromAgents asks the nodes' agents as the apiserver.
func FromAgents(nodes *nodeproxy.Nodes) Ask {
	return func(ctx context.Context, node string) (*Reading, error) {
		agent, err := nodes.Agent(ctx, node, false)
		if err != nil {
			return nil, err
		}
		at := agent.At(nodeproxy.MetricsLocation()).String()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
		if err != nil {
			return nil, fmt.Errorf("asking the agent of node %s: %w", node, err)
		}
		response, err := agent.Transport.RoundTrip(request) // no http.Client: an agent sends no redirects
		if err != nil {
			return nil, nodeproxy.Unreachable(node, err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("the agent of node %s answers %s", node, response.Status)
		}
		reading, err := Parse(response.Body, time.Now())
		if err != nil {
			return nil, fmt.Errorf("reading the answer of the agent of node %s: %w", node, err)
		}
		return reading, nil
	}
}
