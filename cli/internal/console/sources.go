package console

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/cli/internal/console/feed"
	"keelson.dev/cli/internal/console/rows"
	"keelson.dev/cli/internal/view"
)

const (
	// askEvery is how often the daemons are asked while a page shows them: they have no watches.
	askEvery = 5 * time.Second
	// keptEvents is how many Events are kept, the newest.
	keptEvents = 500
	// topicDaemons is the topic of the mesh's daemons and of what they lead. All others are resources of the API.
	topicDaemons = "daemons"
	// resourceNodes is the only resource whose objects have no namespace.
	resourceNodes = "nodes"
)

// explained are the kinds that pages may ask about, by the topics that show them.
var explained = map[string]string{"deployments": "Deployment", "statefulsets": "StatefulSet",
	"daemonsets": "DaemonSet", "jobs": "Job", "pods": "Pod", "nodes": "Node"}

// addTopics adds what pages may follow: no other kind is read, and no object leaves but as a row.
func addTopics(hub *feed.Hub, c *Config) {
	namespace, core, apps := c.Namespace, c.Client.CoreV1(), c.Client.AppsV1()
	addObjects(hub, c, "deployments", 0, apps.Deployments(namespace), rows.Deployment)
	addObjects(hub, c, "statefulsets", 0, apps.StatefulSets(namespace), rows.StatefulSet)
	addObjects(hub, c, "daemonsets", 0, apps.DaemonSets(namespace), rows.DaemonSet)
	addObjects(hub, c, "jobs", 0, c.Client.BatchV1().Jobs(namespace), rows.Job)
	addObjects(hub, c, "pods", 0, core.Pods(namespace), rows.OfPod)
	addObjects(hub, c, resourceNodes, 0, core.Nodes(), rows.OfNode)
	addObjects(hub, c, "events", keptEvents, core.Events(namespace), event)
	hub.Add(topicDaemons, 0, poll(c.Daemons))
}

func event(e *corev1.Event) rows.Event { return rows.OfEvent(e, view.LastSeen(*e)) }

// addObjects adds the topic of a resource, with a row for each object.
func addObjects[O metav1.Object, R any, L runtime.Object](hub *feed.Hub, c *Config, resource string, keep int,
	api feed.Lister[L], content func(O) R) {
	of := feed.Watched[L]{Client: c.Client, API: api, What: resource + where(resource, c.Namespace)}
	hub.Add(resource, keep, feed.Watch(of, func(object O) (feed.Row, error) {
		shown := content(object)
		row, err := rowOf(object.GetNamespace()+"/"+object.GetName(), object.GetNamespace(), shown)
		if event, ok := any(shown).(rows.Event); ok {
			row.At = event.At
		}
		return row, err
	}))
}

// where says of which namespaces the objects of a resource are; nothing of nodes, which are in none.
func where(resource, namespace string) string {
	switch {
	case resource == resourceNodes:
		return ""
	case namespace == "":
		return " of all namespaces"
	}
	return " of namespace " + namespace
}

func rowOf(key, namespace string, content any) (feed.Row, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return feed.Row{}, fmt.Errorf("writing the row of %s: %w", key, err)
	}
	return feed.Row{Key: key, Namespace: namespace, Content: text}, nil
}

// daemonRow is a daemon, and leaderRow what a daemon leads: they share a topic.
type daemonRow struct {
	Daemon view.Daemon `json:"daemon"`
}

type leaderRow struct {
	Leader view.Leader `json:"leader"`
}

// poll returns the source of the daemons.
func poll(ask func(context.Context) ([]view.Daemon, []view.Leader, string)) feed.Source {
	return func(ctx context.Context, into feed.Sink) {
		for ctx.Err() == nil {
			daemons, leaders, problem := ask(ctx)
			if found, err := daemonRows(daemons, leaders); err != nil {
				problem = err.Error()
			} else {
				into.Replace(found)
			}
			into.Problem(problem)
			select {
			case <-ctx.Done():
			case <-time.After(askEvery):
			}
		}
	}
}

func daemonRows(daemons []view.Daemon, leaders []view.Leader) ([]feed.Row, error) {
	found := make([]feed.Row, 0, len(daemons)+len(leaders))
	add := func(key string, content any) error {
		row, err := rowOf(key, "", content)
		found = append(found, row)
		return err
	}
	for _, d := range daemons {
		if err := add("daemon/"+d.Name, daemonRow{d}); err != nil {
			return nil, err
		}
	}
	for _, l := range leaders {
		if err := add("lease/"+l.Lease+"/"+l.Daemon, leaderRow{l}); err != nil {
			return nil, err
		}
	}
	return found, nil
}
