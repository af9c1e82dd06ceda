package scenario

import (
	"bufio"
	"io"
	"strings"
	"sync"
)

// lines gathers what a running command prints.
type lines struct {
	mutex sync.Mutex
	seen  []string
}

func newLines(from io.Reader) *lines {
	l := &lines{}
	go func() {
		for scanner := bufio.NewScanner(from); scanner.Scan(); {
			l.mutex.Lock()
			l.seen = append(l.seen, strings.Join(strings.Fields(scanner.Text()), " "))
			l.mutex.Unlock()
		}
	}()
	return l
}

// await waits for a line that begins like that and returns it; blanks between words count as one.
func (l *lines) await(w *World, beginning string) (line string) {
	w.Helper()
	w.Await("a line "+beginning, func() Answer {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		for _, line = range l.seen {
			if strings.HasPrefix(line, beginning) {
				return ""
			}
		}
		return Saw("printed so far: " + strings.Join(l.seen, "\n"))
	})
	return line
}
