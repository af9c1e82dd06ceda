package nodeipam

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"keelson.dev/kit/events"
	"keelson.dev/kit/pass"
	"keelson.dev/services/workload-controllers/internal/write"
)

// pageSize is how many Nodes a new leader reads at once.
const pageSize = 500

// recorder emits events; events.Recorder implements it.
type recorder interface {
	Record(object runtime.Object, e events.Event)
}

// Controller assigns ranges to Nodes, one pass at a time: two concurrent passes would be offered the same share. It
// needs no gate: the ledger knows what was assigned, and the same ranges are written again if the cache does not
// show them.
type Controller struct {
	reader   client.Reader // the cache
	live     client.Reader
	writer   *write.Writer
	recorder recorder
	log      *zap.Logger
	ledger   *ledger
}

// steps are what a pass over a Node consists of.
func (c *Controller) steps() *pass.Steps[*corev1.Node, Input, Plan] {
	return &pass.Steps[*corev1.Node, Input, Plan]{
		Reader: c.reader, New: func() *corev1.Node { return &corev1.Node{} },
		Observe: c.observe, Decide: Decide, Apply: c.apply,
	}
}

// recount reads the Nodes and their ranges from the apiserver, and reports whether a share has become free. The
// cache may lack writes of earlier leaders, and may never have shown a Node that came and went.
func (c *Controller) recount(ctx context.Context) (freed bool, err error) {
	before, there := c.ledger.owners(), map[types.UID]bool{}
	for next := ""; ; {
		page := &corev1.NodeList{}
		if err := c.live.List(ctx, page, client.Limit(pageSize), client.Continue(next)); err != nil {
			return false, fmt.Errorf("reading which ranges Nodes have: %w", err)
		}
		for i := range page.Items {
			there[page.Items[i].UID] = true
			c.ledger.observe(&page.Items[i])
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	for _, uid := range before {
		if !there[uid] {
			freed = c.ledger.drop(uid) || freed
		}
	}
	return freed, nil
}

func (c *Controller) observe(_ context.Context, node *corev1.Node) (Input, bool, error) {
	return c.ledger.look(node), true, nil
}

// apply carries out the plan. The ledger assigns a range before it is written: whether or not the write arrives, no
// other Node gets it.
func (c *Controller) apply(ctx context.Context, in Input, plan Plan) error {
	if len(plan.Full) > 0 && c.ledger.wait(in.Node) {
		if freed, err := c.recount(ctx); err != nil || freed {
			return cmp.Or(err, pass.ErrStale)
		}
		c.log.Warn("no Pod range is left for new Nodes: "+fullText(plan.Full)+" of --cluster-cidr are in use",
			zap.String("node", in.Node.Name))
	}
	for _, e := range plan.Events {
		c.recorder.Record(in.Node, e)
	}
	if len(plan.Assign) == 0 {
		return nil
	}
	c.ledger.hold(in.Node.UID, plan.Assign)
	patch, err := patchOf(in.Node.UID, plan)
	if err != nil {
		return err
	}
	target := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: in.Node.Name}}
	switch err := c.writer.Patch(ctx, in.Node.UID, target, patch); {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsInvalid(err):
		return c.lookAgain(ctx, in.Node, err)
	case err != nil:
		return fmt.Errorf("writing the ranges of Node %s: %w", in.Node.Name, err)
	}
	return nil
}

// lookAgain handles a Node that was refused its ranges because it has got others meanwhile.
func (c *Controller) lookAgain(ctx context.Context, node *corev1.Node, refused error) error {
	now := &corev1.Node{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(node), now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if now.UID == node.UID && len(rangesOf(now)) == 0 {
		return fmt.Errorf("writing the ranges of Node %s: %w", node.Name, refused)
	}
	if now.UID == node.UID {
		c.ledger.observe(now)
	}
	return nil
}

// patchOf returns a patch that writes the ranges into exactly this Node, and into no other of its name.
func patchOf(uid types.UID, plan Plan) (client.Patch, error) {
	var texts []string
	for _, prefix := range plan.Assign {
		texts = append(texts, prefix.String())
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid},
		"spec":     map[string]any{"podCIDR": texts[0], "podCIDRs": texts},
	})
	if err != nil {
		return nil, fmt.Errorf("writing down the ranges: %w", err)
	}
	return client.RawPatch(types.MergePatchType, patch), nil
}
