package mesh

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"keelson.dev/cli/internal/systemd"
	"keelson.dev/kit/subprocess"
)

// logLines is how much of a log is shown of a daemon that does not become ready.
const logLines = 15

// logLimit bounds how long the journal may take to show it.
const logLimit = 10 * time.Second

// logEnd is a log from a moment on: of the journal, or a file.
type logEnd struct {
	unit  string
	since time.Time
	file  string
	from  int64
}

// logFrom returns the log of a unit from now on.
func (m *Mesh) logFrom(name string) logEnd {
	log := m.units().Log(name)
	if unit, ofJournal := strings.CutPrefix(log, systemd.ShowJournal); ofJournal {
		return logEnd{unit: unit, since: time.Now()}
	}
	end := logEnd{file: log}
	if info, err := os.Stat(log); err == nil {
		end.from = info.Size()
	}
	return end
}

// last returns the last lines; instead of them, why they cannot be shown.
func (l logEnd) last(ctx context.Context) []string {
	if l.unit == "" {
		lines, err := subprocess.Tail(l.file, l.from, logLines)
		if err != nil {
			return []string{err.Error()}
		}
		return lines
	}
	ctx, cancel := context.WithTimeout(ctx, logLimit)
	defer cancel()
	out, err := systemd.Journal(ctx, l.unit, "--output=cat", fmt.Sprintf("--lines=%d", logLines),
		fmt.Sprintf("--since=@%d", l.since.Unix()))
	if err != nil {
		return []string{fmt.Sprintf("(%s%s says more)", systemd.ShowJournal, l.unit)}
	}
	if text := strings.TrimSpace(out); text != "" {
		return strings.Split(text, "\n")
	}
	return nil
}
