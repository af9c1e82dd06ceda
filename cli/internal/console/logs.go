package console

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// tailLines is how many lines of a log there are at first.
	tailLines = 500
	// mostLines is how many lines are sent together.
	mostLines = 200
	// longestLine is how much of a line is sent, in bytes.
	longestLine = 4096
)

// log sends the end of a container's log, and what comes, until the container ends or the page leaves.
func (c *Console) log(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	for _, name := range []string{"namespace", "pod", "container"} {
		if query.Get(name) == "" {
			refuse(w, http.StatusBadRequest, name+": is missing")
			return
		}
	}
	free, taken := c.logs.take(w)
	if !taken {
		return
	}
	defer free()
	previous, tail := query.Get("previous") == "true", int64(tailLines)
	in, err := c.config.Client.CoreV1().Pods(query.Get("namespace")).GetLogs(query.Get("pod"), &corev1.PodLogOptions{
		Container: query.Get("container"), Previous: previous, Follow: !previous, TailLines: &tail,
	}).Stream(r.Context())
	if err != nil {
		refuse(w, http.StatusBadGateway, logProblem(err))
		return
	}
	defer in.Close()
	out := begin(w)
	if out.alive() != nil {
		return
	}
	why := ""
	if err := sendLines(in, func(lines []string) error { return out.send("lines", lines) }); err != nil {
		why = err.Error()
	}
	_ = out.send("end", why) // a page that has left needs no end
}

// logProblem says why there is no log.
func logProblem(err error) string {
	if apierrors.IsForbidden(err) {
		return "you may not read the logs of this namespace"
	}
	return err.Error()
}

// sendLines sends the lines of a log, several together if they are there already. It reads on only when they are sent.
func sendLines(in io.Reader, send func([]string) error) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	var lines []string
	for {
		line, err := readLine(buffered)
		if line != "" || err == nil {
			lines = append(lines, plain(line))
		}
		if len(lines) > 0 && (err != nil || buffered.Buffered() == 0 || len(lines) == mostLines) {
			if err := send(lines); err != nil {
				return err
			}
			lines = nil
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readLine reads a line, and returns its beginning if it is too long.
func readLine(in *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if room := longestLine + 1 - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		text := strings.TrimRight(string(line), "\r\n")
		if len(text) > longestLine {
			text = text[:longestLine] + "…"
		}
		return text, err
	}
}

// sequence is an instruction to a terminal: colors, movements, titles.
var sequence = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])`)

// plain returns a line without the instructions to a terminal, which a page would show as text.
func plain(line string) string {
	return strings.ToValidUTF8(sequence.ReplaceAllString(line, ""), "�")
}
