package feed

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// source is a source under a test's control: what it is told to do, it does in its run.
type source struct {
	runs  int
	sinks []Sink
	ended int
}

func (s *source) run(ctx context.Context, into Sink) {
	s.runs++
	s.sinks = append(s.sinks, into)
	<-ctx.Done()
	s.ended++
}

// topic returns a topic of a source that keeps so many rows; it runs until the test ends.
func topic(t *testing.T, s *source, keep int) (topic *Topic, end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	hub := NewHub(ctx)
	hub.Add("things", keep, s.run)
	return hub.Topic("things"), func() { cancel(); hub.Wait() }
}

func row(key, content string) Row {
	namespace, _, _ := strings.Cut(key, "/")
	return Row{Key: key, Namespace: namespace, Content: []byte(content)}
}

// page is a page that follows a topic.
type page struct {
	*Reader
	woken int
}

func follow(topic *Topic, namespace string, limit int) *page {
	p := &page{}
	p.Reader = topic.Follow(namespace, limit, func() { p.woken++ })
	synctest.Wait() // the source runs
	return p
}

// says returns what is new, in one line.
func (p *page) says() string {
	change, news := p.Next()
	if !news {
		return ""
	}
	var parts []string
	if change.Whole {
		parts = append(parts, "whole")
	}
	if change.Loading {
		parts = append(parts, "loading")
	}
	for _, set := range change.Set {
		parts = append(parts, fmt.Sprintf("%s=%s", set.Key, set.Row))
	}
	for _, gone := range change.Gone {
		parts = append(parts, "-"+gone)
	}
	if change.Hidden > 0 {
		parts = append(parts, fmt.Sprint("hidden ", change.Hidden))
	}
	if change.Problem != "" {
		parts = append(parts, "problem "+change.Problem)
	}
	return strings.Join(parts, ", ")
}

func (p *page) check(t *testing.T, what, want string) {
	t.Helper()
	if got := p.says(); got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// A page gets all rows first, and then what changes; what stays as it was is no change.
func TestAPageFollowsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		topic, end := topic(t, s, 0)
		defer end()
		p := follow(topic, "", 10)
		p.check(t, "before the list", "whole, loading")
		p.check(t, "again", "")
		into := s.sinks[0]
		into.Replace([]Row{row("n/b", "1"), row("n/a", "1")})
		p.check(t, "the list", "whole, n/a=1, n/b=1")
		into.Set(row("n/c", "1"))
		into.Set(row("n/a", "2"))
		into.Set(row("n/a", "3"))
		into.Remove("n/b")
		into.Remove("n/nosuch")
		p.check(t, "changes", "n/a=3, n/c=1, -n/b")
		before := p.woken
		into.Set(row("n/a", "3"))
		into.Replace([]Row{row("n/c", "1"), row("n/a", "3")})
		if p.check(t, "no change", ""); p.woken != before {
			t.Errorf("the page was woken %d times for nothing", p.woken-before)
		}
		into.Set(row("n/d", "1"))
		into.Remove("n/d")
		p.check(t, "come and gone", "")
		into.Replace([]Row{row("n/c", "2"), row("n/e", "1")})
		p.check(t, "another list", "n/c=2, n/e=1, -n/a")
		into.Problem("it broke")
		p.check(t, "a problem leaves the rows", "problem it broke")
		into.Problem("it broke")
		p.check(t, "the same problem", "")
		into.Problem("")
		if change, news := p.Next(); !news || change.Problem != "" || change.Whole {
			t.Errorf("the end of the problem: %+v, %t", change, news)
		}
	})
}

// A list of nothing is an answer, too.
func TestNothingIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		topic, end := topic(t, s, 0)
		defer end()
		p := follow(topic, "", 10)
		p.check(t, "before the list", "whole, loading")
		s.sinks[0].Replace(nil)
		p.check(t, "the list", "whole")
	})
}

// A page gets the rows of its namespace, and those of none, up to its limit. When some go, others get their room.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		topic, end := topic(t, s, 0)
		defer end()
		all, some := follow(topic, "", 2), follow(topic, "n", 2)
		into := s.sinks[0]
		cluster := Row{Key: "/z", Content: []byte("1")}
		into.Replace([]Row{row("m/a", "1"), row("n/a", "1"), row("n/b", "1"), cluster})
		all.check(t, "all", "whole, /z=1, m/a=1, hidden 2")
		some.check(t, "of a namespace", "whole, /z=1, n/a=1, hidden 1")
		into.Set(row("n/b", "2"))
		all.check(t, "a hidden row changes", "")
		into.Set(row("n/c", "1"))
		all.check(t, "another one", "hidden 3")
		some.check(t, "another one of the namespace", "hidden 2")
		into.Remove("m/a")
		all.check(t, "one goes", "n/a=1, -m/a, hidden 2")
		some.check(t, "one of another namespace goes", "")
		into.Remove("/z")
		into.Set(row("n/a", "2"))
		all.check(t, "one more goes", "n/a=2, n/b=2, -/z, hidden 1")
		some.check(t, "one more goes, seen from the namespace", "n/a=2, n/b=2, -/z, hidden 1")
	})
}

// A topic may keep only the newest rows.
func TestTheNewestAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		topic, end := topic(t, s, 8)
		defer end()
		p := follow(topic, "", 100)
		at := func(i int) Row {
			r := row(fmt.Sprintf("n/%02d", i), "1")
			r.At = time.Unix(int64(i), 0)
			return r
		}
		var rows []Row
		for i := range 12 {
			rows = append(rows, at(i))
		}
		s.sinks[0].Replace(rows)
		p.check(t, "of a list", "whole, n/04=1, n/05=1, n/06=1, n/07=1, n/08=1, n/09=1, n/10=1, n/11=1")
		s.sinks[0].Set(at(20))
		p.check(t, "one more", "n/20=1") // there is some room, so that not each new row costs a sort
		s.sinks[0].Set(at(21))
		p.check(t, "two more", "n/21=1, -n/04, -n/05")
	})
}

// A page that does not read for long costs no more memory: it gets everything again.
func TestAPageThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		topic, end := topic(t, s, 0)
		defer end()
		p := follow(topic, "", 1)
		s.sinks[0].Replace(nil)
		p.says()
		for i := range mostChanged + 1 {
			s.sinks[0].Set(row(fmt.Sprintf("n/%d", i), "1"))
			s.sinks[0].Remove(fmt.Sprintf("n/%d", i))
		}
		if len(p.dirty) > mostChanged {
			t.Errorf("it remembers %d rows", len(p.dirty))
		}
		s.sinks[0].Set(row("n/last", "1"))
		p.check(t, "at last", "whole, n/last=1")
		if len(p.dirty) > 0 {
			t.Errorf("it still remembers %d rows", len(p.dirty))
		}
	})
}

// There is one source for all pages, from the first page until a while after the last.
func TestASourceRunsWhilePagesFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		topic, end := topic(t, s, 0)
		check := func(what string, runs, ended int) {
			t.Helper()
			synctest.Wait()
			if s.runs != runs || s.ended != ended {
				t.Errorf("%s: %d runs, %d of them over; want %d, %d", what, s.runs, s.ended, runs, ended)
			}
		}
		check("before the first page", 0, 0)
		a := follow(topic, "", 1)
		b := follow(topic, "", 1)
		check("two pages", 1, 0)
		first := s.sinks[0]
		first.Replace([]Row{row("n/a", "1")})
		a.Leave()
		a.Leave()
		time.Sleep(2 * linger)
		check("one has left", 1, 0)
		b.Leave()
		time.Sleep(linger - time.Second)
		c := follow(topic, "", 1)
		time.Sleep(2 * linger)
		check("one is loaded again", 1, 0)
		c.check(t, "it finds what was there", "whole, n/a=1")
		c.Leave()
		time.Sleep(linger + time.Second)
		check("all have left", 1, 1)
		d := follow(topic, "", 1)
		check("another comes", 2, 1)
		first.Replace([]Row{row("n/old", "1")})
		first.Problem("old")
		d.check(t, "what the first run says late", "whole, loading")
		s.sinks[1].Replace([]Row{row("n/b", "1")})
		d.check(t, "what the second says", "whole, n/b=1")
		end()
		check("at the end", 2, 2)
		d.Leave()
		time.Sleep(2 * linger)
	})
}

// Each page has its own memory of what it has.
func TestPagesDoNotDisturbEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		topic, end := topic(t, s, 0)
		defer end()
		a := follow(topic, "", 10)
		s.sinks[0].Replace([]Row{row("n/a", "1")})
		a.check(t, "the first", "whole, n/a=1")
		b := follow(topic, "", 10)
		s.sinks[0].Set(row("n/b", "1"))
		b.check(t, "the second", "whole, n/a=1, n/b=1")
		a.check(t, "the first again", "n/b=1")
		if left := []string{a.says(), b.says()}; !slices.Equal(left, []string{"", ""}) {
			t.Errorf("more is said: %q", left)
		}
	})
}
