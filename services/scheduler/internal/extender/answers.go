package extender

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"keelson.dev/services/scheduler/internal/rules"
)

const (
	// maxText bounds what is repeated of an extender's words, in characters.
	maxText = 256
	// unexplained is the reason of a node that an extender leaves out without one.
	unexplained = "node(s) were refused by an extender"
)

// Filtered reads the answer to a filter call about these nodes: which are left, and why each of the others is not.
func Filtered(r *extenderv1.ExtenderFilterResult, asked []string, byName bool) ([]string, map[string]string, error) {
	if r.Error != "" {
		return nil, nil, errors.New("it says: " + Clean(r.Error))
	}
	var named []string
	switch {
	case byName && r.NodeNames != nil:
		named = *r.NodeNames
	case r.Nodes != nil:
		for i := range r.Nodes.Items {
			named = append(named, r.Nodes.Items[i].Name)
		}
	}
	passed, err := among(named, asked)
	if err != nil {
		return nil, nil, err
	}
	var left []string
	failed := map[string]string{}
	for _, name := range asked {
		if passed[name] {
			left = append(left, name)
			continue
		}
		text := Clean(r.FailedAndUnresolvableNodes[name])
		if text == "" {
			text = Clean(r.FailedNodes[name])
		}
		if text == "" {
			text = unexplained
		}
		failed[name] = text
	}
	return left, failed, nil
}

// among returns the names as a set, unless one of them was not asked about.
func among(names, asked []string) (map[string]bool, error) {
	known := make(map[string]bool, len(asked))
	for _, name := range asked {
		known[name] = true
	}
	set := make(map[string]bool, len(names))
	for _, name := range names {
		if !known[name] {
			return nil, fmt.Errorf("it names node %q, about which it was not asked", Clean(name))
		}
		set[name] = true
	}
	return set, nil
}

// Scored reads the answer to a prioritize call about these nodes and adds it to the scores. One of the highest score
// and weight 1 counts as much as a rule of weight 1 that is for a node. On an error nothing was added.
func Scored(list extenderv1.HostPriorityList, asked []string, weight int64, scores map[string]int64) error {
	names := make([]string, 0, len(list))
	for _, p := range list {
		names = append(names, p.Host)
		if p.Score < extenderv1.MinExtenderPriority || p.Score > extenderv1.MaxExtenderPriority {
			return fmt.Errorf("it gives node %q score %d, which must be from %d to %d", Clean(p.Host), p.Score,
				extenderv1.MinExtenderPriority, extenderv1.MaxExtenderPriority)
		}
	}
	set, err := among(names, asked)
	if err != nil {
		return err
	}
	if len(set) < len(names) {
		return errors.New("it gives a node two scores")
	}
	for _, p := range list {
		scores[p.Host] += p.Score * weight * (rules.MaxScore / extenderv1.MaxExtenderPriority)
	}
	return nil
}

// Spared reads the answer to a preempt call about these plans: which are left, and with which victims.
func Spared(r *extenderv1.ExtenderPreemptionResult, asked map[string]Victims) (map[string][]types.UID, error) {
	left := map[string][]types.UID{}
	for name, victims := range r.NodeNameToMetaVictims {
		if _, ok := asked[name]; !ok {
			return nil, fmt.Errorf("it names node %q, about which it was not asked", Clean(name))
		}
		left[name] = []types.UID{}
		if victims == nil {
			continue
		}
		for _, p := range victims.Pods {
			if p != nil {
				left[name] = append(left[name], types.UID(p.UID))
			}
		}
	}
	return left, nil
}

// Clean makes the words of an extender fit for a status and an event: one short line.
func Clean(text string) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?")))
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText]) + "..."
	}
	return text
}
