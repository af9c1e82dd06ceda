package monitoring

import (
	"fmt"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"keelson.dev/kit/metricspage"
)

// ofTargets are the labels that Prometheus gives every series of a target.
var ofTargets = []string{"instance", "job"}

// Series are the labels of every series that may be asked for, by its name.
type Series map[string][]string

// Shown reads from the page which series daemons show. A histogram is three.
func Shown(page string) (Series, error) {
	families, err := metricspage.Families(page)
	if err != nil {
		return nil, err
	}
	shown := Series{"up": nil} // Prometheus's own
	add := func(name string, more ...string) {
		shown[name] = append(shown[name], more...)
	}
	for _, family := range families {
		switch family.Type {
		case "histogram":
			add(family.Name+"_bucket", append([]string{"le"}, family.Labels...)...)
			add(family.Name+"_sum", family.Labels...)
			add(family.Name+"_count", family.Labels...)
		case "summary":
			add(family.Name, append([]string{"quantile"}, family.Labels...)...)
			add(family.Name+"_sum", family.Labels...)
			add(family.Name+"_count", family.Labels...)
		default:
			add(family.Name, family.Labels...)
		}
	}
	return shown, nil
}

// Check returns what is wrong with a query: what it asks for and no daemon shows.
func (s Series) Check(query string) (wrong []string) {
	expression, err := promQL.ParseExpr(query)
	if err != nil {
		return []string{err.Error()}
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			wrong = append(wrong, s.checkSelector(n)...)
		case *parser.AggregateExpr:
			wrong = append(wrong, s.checkLabels("groups by", n.Grouping, n.Expr)...)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				wrong = append(wrong, s.checkLabels("matches by", n.VectorMatching.MatchingLabels, n)...)
				wrong = append(wrong, s.checkLabels("takes over", n.VectorMatching.Include, n)...)
			}
		}
		return nil
	})
	return wrong
}

func (s Series) checkSelector(selector *parser.VectorSelector) (wrong []string) {
	known, ok := s[selector.Name]
	if !ok {
		return []string{"no daemon shows " + selector.Name}
	}
	for _, matcher := range selector.LabelMatchers {
		if name := matcher.Name; name != model.MetricNameLabel && !slices.Contains(known, name) &&
			!slices.Contains(ofTargets, name) {
			wrong = append(wrong, fmt.Sprintf("%s has no label %s", selector.Name, name))
		}
	}
	return wrong
}

// checkLabels is about labels of what an expression asks for.
func (s Series) checkLabels(does string, names []string, of parser.Node) (wrong []string) {
	known := s.labelsOf(of)
	for _, name := range names {
		if !slices.Contains(known, name) {
			wrong = append(wrong, fmt.Sprintf("%s %s, which %s does not have", does, name, of))
		}
	}
	return wrong
}

// labelsOf are those that series of an expression may have.
func (s Series) labelsOf(of parser.Node) []string {
	known := slices.Clone(ofTargets)
	parser.Inspect(of, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			known = append(known, s[selector.Name]...)
		}
		return nil
	})
	return known
}
