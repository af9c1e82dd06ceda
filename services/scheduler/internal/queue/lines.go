package queue

import "time"

// Hold puts an entry that was taken out, and could not be tried yet, into a line.
func (q *Queue) Hold(e *Entry, line string, now time.Time) {
	q.Remove(e)
	if q.lines[line] == nil {
		q.lines[line] = &entries{before: urgent}
	}
	e.line = line
	q.put(q.lines[line], e, Held, now)
}

// Lines returns the lines in which entries are held, in no order.
func (q *Queue) Lines() []string {
	if len(q.lines) == 0 {
		return nil
	}
	names := make([]string, 0, len(q.lines))
	for name := range q.lines {
		names = append(names, name)
	}
	return names
}

// Release makes the most urgent entry of a line active.
func (q *Queue) Release(line string, now time.Time) {
	if at := q.lines[line]; at != nil {
		q.Return(at.first(), now)
	}
}

// Return makes an entry active whose last try does not count.
func (q *Queue) Return(e *Entry, now time.Time) {
	q.Remove(e)
	q.activate(e, now)
}

func (q *Queue) leaveLine(e *Entry) {
	at := q.lines[e.line]
	at.remove(e)
	if len(at.list) == 0 {
		delete(q.lines, e.line)
	}
}
